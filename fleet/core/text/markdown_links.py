"""Markdown's links, images and footnotes, replaced by their text; other brackets stay."""

import re

LONGEST_LABEL = 1_000
LONGEST_TARGET = 2_000

_BRACKET = re.compile(r"!?\[|\]\(")
_LABEL_END = re.compile(r"[\[\]]")
_PAREN = re.compile(r"[()]")
_CUT_TARGET = re.compile(r"[^()\s]{0,2000}(?:\)|\Z)")


def strip_links(text: str) -> str:
    """Return the text without links; those that are cut off at either end of the text count too."""
    kept: list[str] = []
    at = 0
    while found := _BRACKET.search(text, at):
        kept.append(text[at : found.start()])
        label, at = _read_end(text, found.end()) if found[0] == "](" else _read(text, found.end())
        kept.append(found[0] if label is None else label)
        at = at if label is not None else found.end()
    kept.append(text[at:])
    return "".join(kept)


def _read_end(text: str, start: int) -> tuple[str | None, int]:
    """Return what replaces the end of a link whose label was cut off, None where it is none, and where it ends."""
    found = _CUT_TARGET.match(text, start)
    return ("", found.end()) if found else (None, start)


def _read(text: str, start: int) -> tuple[str | None, int]:
    """Return what replaces a link whose label begins here, None where it is none, and where it ends."""
    found = _LABEL_END.search(text, start, start + LONGEST_LABEL)
    if found is None or found[0] == "[":
        return None, start
    label, after = text[start : found.start()], found.end()
    if label.startswith("^"):
        return "", after + (text[after : after + 1] == ":")
    opened = text[after : after + 1]
    end = (
        _find_target_end(text, after + 1)
        if opened == "("
        else _find_reference_end(text, after + 1)
        if opened == "["
        else 0
    )
    return (label, end) if end else (None, start)


def _find_reference_end(text: str, start: int) -> int:
    found = _LABEL_END.search(text, start, start + LONGEST_LABEL)
    return found.end() if found and found[0] == "]" else 0


def _find_target_end(text: str, start: int) -> int:
    """Return where a target ends, which may hold parentheses, and may be cut off by the end of the text; 0 for none."""
    limit, at, depth = start + LONGEST_TARGET, start, 1
    while found := _PAREN.search(text, at, limit):
        at = found.end()
        depth += 1 if found[0] == "(" else -1
        if depth == 0:
            return at
        if depth > 2:
            return 0
    return len(text) if depth == 1 and len(text) <= limit else 0
