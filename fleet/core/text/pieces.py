"""Long texts in pieces, with a pause for everybody else between them.

A model may write 200,000 characters in one chunk, which are up to 100,000 sentences: three seconds of work.
"""

import asyncio
from collections.abc import Iterator
from typing import Final

BITE: Final = 500
"""Characters of a text that are worked on before others have their turn: at worst (a sentence every two characters)
20 ms."""
_EACH: Final = 10
"""What a piece costs besides its characters."""


def bites(text: str) -> Iterator[str]:
    """Yield a text in pieces of at most `BITE` characters."""
    for start in range(0, len(text), BITE):
        yield text[start : start + BITE]


class Breath:
    """Lets others have their turn after every `BITE` characters of work."""

    def __init__(self) -> None:
        self._done = 0

    async def take(self, piece: str) -> None:
        """Say that a piece was worked on."""
        self._done += len(piece) + _EACH
        if self._done >= BITE:
            self._done = 0
            await asyncio.sleep(0)
