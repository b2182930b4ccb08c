"""An answer as clients get it: cleaned for speech, piece by piece, the same whether it is streamed or not."""

import re

from fleet.core.sentences import SentenceSplitter
from fleet.core.speakable import speakable

_TIGHT = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
"""Scripts that put no space between sentences."""


class Spoken:
    """Collects what a model writes.

    `text` is what was to be said of it, the pieces joined; `words` whether the model wrote anything at all.
    """

    def __init__(self) -> None:
        self._splitter = SentenceSplitter()
        self.text = ""
        self.words = False

    def feed(self, text: str) -> list[str]:
        """Take more text; return the pieces that are certain now, which make up `text` when put together."""
        self.words = self.words or bool(text.strip())
        return self._clean(self._splitter.feed(text))

    def flush(self) -> list[str]:
        """End a message of the model; return its last pieces."""
        return self._clean(self._splitter.flush())

    def _clean(self, pieces: list[str]) -> list[str]:
        return [self._join(said) for piece in pieces if (said := speakable(piece))]

    def _join(self, said: str) -> str:
        if self.text and not _TIGHT.match(self.text[-1]) and not _TIGHT.match(said[0]):
            said = f" {said}"
        self.text += said
        return said
