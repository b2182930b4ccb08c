"""Whether the recognised text of an utterance reads as a finished one; rules by language, as data."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

TextVerdict = Literal["finished", "unfinished", "filler", "empty"]
"""`filler`: only sounds of thinking; `empty`: no words at all."""

_RULES: Final[Mapping[str, Mapping[str, Sequence[str]]]] = tomllib.loads(
    Path(__file__).with_name("unfinished.toml").read_text(encoding="utf-8")
)
_LINKED: Final = re.compile(r"(?:[,，、:：;；—-]|\.\.\.|…)\s*$")
_ENDED: Final = re.compile(r"[.!?。！？\d%％][\"'”’)）]*\s*$")
_WORD: Final = re.compile(r"[\w']+")
_NUMBER: Final = re.compile(
    r"\d|[零一二两三四五六七八九十百半]|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|\w+teen|\w+ty|eleven|twelve|"
    r"half|maximum|minimum|max|full|zero|hundred)\b",
)
"""Also the words for the ends of a scale, which stand for a number."""


def has_end(text: str) -> bool:
    """Return whether the recogniser wrote a mark behind the text that ends a sentence, or a number."""
    return _ENDED.search(text) is not None


def judge_text(text: str, language: str) -> TextVerdict:
    """Return the verdict on a transcript.

    Args:
        text: As recognised.
        language: ISO 639-1 code; for a language without rules only punctuation counts.
    """
    words = _WORD.findall(text.lower().replace("’", "'"))
    if not words:
        return "empty"
    rules = _RULES.get(language, {})
    plain = ("" if language == "zh" else " ").join(words)
    if _is_filler(plain, rules):
        return "filler"
    if _LINKED.search(text) or _breaks_off(text, plain, words[-1], rules):
        return "unfinished"
    return "finished"


def _is_filler(plain: str, rules: Mapping[str, Sequence[str]]) -> bool:
    left = plain
    for filler in sorted(rules.get("fillers", ()), key=len, reverse=True):
        left = re.sub(rf"\b{filler}\b" if filler.isascii() else filler, "", left)
    return not left.strip()


def _breaks_off(text: str, plain: str, last: str, rules: Mapping[str, Sequence[str]]) -> bool:
    if text.rstrip().endswith(("?", "？")) or plain.endswith(tuple(rules.get("asks", ()))):
        return False
    ends = (*rules.get("ends", ()), *rules.get("fillers", ()))
    if last in ends if " " in plain or plain.isascii() else plain.endswith(tuple(ends)):
        return True
    if any(re.fullmatch(whole, plain) for whole in rules.get("whole", ())):
        return True
    return plain.startswith(tuple(rules.get("numbers", ()))) and not _NUMBER.search(plain)
