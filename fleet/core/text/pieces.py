"""Long texts in pieces, so that the event loop can run other tasks between them.

A model may write 200,000 characters in one chunk, which are up to 100,000 sentences: three seconds of work.
"""

from collections.abc import Iterator
from typing import Final

PIECE_CHARACTERS: Final = 500
"""Characters that are processed without a pause: at worst (a sentence every two characters) 20 ms."""


def cut_text(text: str) -> Iterator[str]:
    """Yield a text in pieces of at most `PIECE_CHARACTERS` characters."""
    for start in range(0, len(text), PIECE_CHARACTERS):
        yield text[start : start + PIECE_CHARACTERS]
