"""The text of an answer for clients: cleaned for speech, piece by piece; the same text with and without streaming."""

import re

from fleet.core.text.sentences import SentenceSplitter
from fleet.core.text.speakable import speakable

_TIGHT = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
"""Scripts without a space between sentences."""
_PAUSES = frozenset(".!?…,;:。！？，、；：—–-")
_CLOSERS = frozenset("”’\"')）】」』》〉]")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


class SpokenText:
    """Collects the text of a model.

    `words`: whether the model has written anything but white space.
    """

    def __init__(self) -> None:
        self._splitter = SentenceSplitter()
        self._line_over = False
        self._said: list[str] = []
        self.words = False

    @property
    def text(self) -> str:
        """All pieces, joined."""
        return "".join(self._said)

    def feed(self, text: str) -> list[str]:
        """Take more text; return the pieces that are complete now. All pieces joined are `text`."""
        self.words = self.words or bool(text.strip())
        said: list[str] = []
        for line in _LINE.findall(text):
            said += self._clean(self._splitter.feed(line))
            self._line_over = self._line_over or line.endswith("\n")
        return said

    def flush(self) -> list[str]:
        """End a message of the model; return its last pieces."""
        said = self._clean(self._splitter.flush())
        self._line_over = True
        return said

    def _clean(self, pieces: list[str]) -> list[str]:
        return [self._join(said) for piece in pieces if (said := speakable(piece))]

    def _join(self, said: str) -> str:
        if self._said:
            said = self._between(self._said[-1], said) + said
        self._line_over = False
        self._said.append(said)
        return said

    def _between(self, before: str, said: str) -> str:
        tight = _TIGHT.match(before[-1]) or _TIGHT.match(said[0])
        if self._line_over and not _ends_with_pause(before):
            # Headings and items of lists end without punctuation; without a comma they would run together.
            return "，" if tight else ", "
        return "" if tight else " "


def _ends_with_pause(piece: str) -> bool:
    """Whether a piece ends with punctuation, perhaps before quotation marks; each piece has a letter or digit."""
    last = next((char for char in reversed(piece) if char not in _CLOSERS and not char.isspace()), "")
    return last in _PAUSES
