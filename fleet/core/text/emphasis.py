"""Markdown's emphasis, code spans, strikethrough and escapes, without their marks.

The rules are CommonMark's, but stricter where marks are often plain characters: between two letters or digits they
count only with a partner at the edge of a word, so that formulas and names stay.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_TOKENS = re.compile(r"\\[!-/:-@\[-`{-~]|`+|\*+|_+|~+")
_HAN = re.compile(r"[\u2e80-\ud7ff\uf900-\ufaff]")
_STRONG = 2


@dataclass(slots=True)
class _Run:
    """Marks of one kind in a row."""

    start: int
    end: int
    before: str
    after: str
    """The characters around it, empty at the ends of the text."""
    partner: bool = False

    @property
    def inside(self) -> bool:
        """Whether it stands within a word."""
        return (_is_word(self.before) or self.before in (")", "]")) and (_is_word(self.after) or self.after == "(")

    @property
    def within_han(self) -> bool:
        return bool(_HAN.match(self.before) and _HAN.match(self.after))

    @property
    def alone(self) -> bool:
        """Whether it has white space on both sides."""
        return not self.before.strip() and not self.after.strip()


def strip_marks(text: str) -> str:
    """Return the text without marks of emphasis."""
    tokens = list(_TOKENS.finditer(text))
    runs = [
        _Run(one.start(), one.end(), text[one.start() - 1 : one.start()], text[one.end() : one.end() + 1])
        for one in tokens
        if one[0][0] in "*_"
    ]
    _pair(text, runs)
    marks = {run.start: _is_mark(text, run) for run in runs}
    return "".join(_written(text, tokens, marks))


def _written(text: str, tokens: Sequence[re.Match[str]], marks: dict[int, bool]) -> Iterable[str]:
    at = 0
    for token in tokens:
        yield text[at : token.start()]
        at = token.end()
        written = token[0]
        if written[0] == "\\":
            yield written[1]
        elif (written[0] in "*_" and not marks[token.start()]) or (written == "~" and _is_plain_tilde(text, token)):
            yield written
    yield text[at:]


def _pair(text: str, runs: Sequence[_Run]) -> None:
    """Note which runs open or close an emphasis together."""
    opened: dict[str, _Run] = {}
    for run in runs:
        key = text[run.start : run.end]
        first = opened.get(key)
        closes = bool(run.before.strip())
        if first and closes and _belong(first, run, len(key)):
            first.partner = run.partner = True
            del opened[key]
        elif run.after.strip():
            opened[key] = run


def _belong(first: _Run, second: _Run, length: int) -> bool:
    if first.inside and second.inside:
        return length >= _STRONG or (first.within_han and second.within_han)
    return True


def _is_mark(text: str, run: _Run) -> bool:
    length = run.end - run.start
    if text[run.start] == "_" and run.inside:
        return False
    if run.partner:
        return True
    if run.inside:
        return length >= _STRONG and bool(_HAN.match(run.before) or _HAN.match(run.after))
    return not (length <= _STRONG and text[run.start] == "*" and _is_between_operands(text, run))


def _is_between_operands(text: str, run: _Run) -> bool:
    """Whether marks with white space around them stand between digits, or between anything when they stand alone."""
    before = run.before if run.before.strip() else text[run.start - 2 : run.start - 1] if run.start > 1 else ""
    after = run.after if run.after.strip() else text[run.end + 1 : run.end + 2]
    if run.alone:
        return bool(before.strip() and after.strip())
    return before.isdigit() and after.isdigit()


def _is_plain_tilde(text: str, token: re.Match[str]) -> bool:
    """Whether a tilde says something: `~5 km`, `5~10`, `~/notes`; at the end of a word it decorates."""
    after = text[token.end() : token.end() + 1]
    return after == "/" or (after.isascii() and after.isalnum())


def _is_word(char: str) -> bool:
    return char.isalnum()
