"""Separates a model's thoughts from its answer."""

import re
from typing import NamedTuple

_NAMES = ("think", "thinking", "thought")
_TAG = re.compile(rf"<(/?)({'|'.join(_NAMES)})>")
_TAGS = tuple(f"<{slash}{name}>" for slash in ("", "/") for name in _NAMES)
_LONGEST = max(map(len, _TAGS))


class SplitText(NamedTuple):
    """A piece of text, split into answer and thought; either may be empty."""

    said: str
    thought: str


class ThoughtFilter:
    """Removes `<think>…</think>` from a streamed text at any place, and the white space after it.

    A thought without an end lasts to the end of the text; an end without a beginning is dropped.
    """

    def __init__(self) -> None:
        self._held = ""
        self._inside = ""
        self._fresh = True

    def feed(self, text: str) -> SplitText:
        """Take the next piece; a possible beginning of a tag is held back."""
        if "<" not in text and not (self._held or self._inside or self._fresh):
            return SplitText(text, "")
        said: list[str] = []
        thought: list[str] = []
        rest, at = self._held + text, 0
        while found := self._next_tag(rest, at):
            (thought if self._inside else said).append(self._part(rest[at : found.start()]))
            self._turn(found)
            at = found.end()
        rest = rest[at:]
        keep = _beginning_of_tag(rest)
        self._held = rest[keep:]
        (thought if self._inside else said).append(self._part(rest[:keep]))
        return SplitText("".join(said), "".join(thought))

    def end(self) -> SplitText:
        """Return the text that was held back."""
        held, self._held = self._part(self._held), ""
        return SplitText("", held) if self._inside else SplitText(held, "")

    def _next_tag(self, text: str, at: int) -> re.Match[str] | None:
        """Return the next tag that counts: inside a thought only its own end does."""
        if self._inside:
            return re.compile(f"<(/)({self._inside})>").search(text, at)
        return _TAG.search(text, at)

    def _turn(self, found: re.Match[str]) -> None:
        self._inside = "" if found[1] else found[2]
        self._fresh = True

    def _part(self, text: str) -> str:
        """Return the text without the white space that follows a tag, or begins the answer."""
        text = text.lstrip() if self._fresh else text
        self._fresh = self._fresh and not text
        return text


def _beginning_of_tag(text: str) -> int:
    """Return where an unfinished tag at the text's end begins, else the text's length."""
    at = text.rfind("<", max(0, len(text) - _LONGEST + 1))
    return at if at >= 0 and any(tag.startswith(text[at:]) for tag in _TAGS) else len(text)
