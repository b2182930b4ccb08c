"""Keeping what a model thinks out of what it says."""

_OPEN = "<think>"
_CLOSE = "</think>"


class ThoughtFilter:
    """Removes `<think>…</think>` from the start of a streamed text, and the white space around it."""

    def __init__(self) -> None:
        self._held = ""
        self._thinking = False
        self._speaking = False

    def feed(self, text: str) -> str:
        """Return what of the text so far is to be said; "" while that is not yet known."""
        if self._speaking:
            return text
        self._held += text
        while self._enters_thought():
            _, closed, rest = self._held.partition(_CLOSE)
            if not closed:
                # Enough to recognise a tag that the next piece completes.
                self._held = self._held[-len(_CLOSE) :]
                return ""
            self._thinking, self._held = False, rest
        return self._start_speaking()

    def end(self) -> str:
        """Return what was held back and turned out to be no thought; a thought without an end is dropped."""
        held, self._held = self._held, ""
        return "" if self._thinking else held

    def _enters_thought(self) -> bool:
        """Whether what is held is a thought, whose opening tag is taken off."""
        if not self._thinking:
            self._held = self._held.lstrip()
            self._thinking = self._held.startswith(_OPEN)
            self._held = self._held.removeprefix(_OPEN)
        return self._thinking

    def _start_speaking(self) -> str:
        if _OPEN.startswith(self._held):
            return ""
        self._speaking = True
        said, self._held = self._held, ""
        return said
