"""Letting the calls of one device pass: quick ones side by side, a slow one alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class CallGate:
    """Calls pass in the order in which they came.

    A device runs one call at a time: a quick one that waited there behind a slow one would seem unanswered.
    """

    def __init__(self) -> None:
        self._turnstile = asyncio.Lock()
        self._quick = 0
        self._clear = asyncio.Event()
        self._clear.set()

    @asynccontextmanager
    async def side_by_side(self) -> AsyncIterator[None]:
        """Wait until no slow call is under way, and pass."""
        async with self._turnstile:
            self._quick += 1
            self._clear.clear()
        try:
            yield
        finally:
            self._quick -= 1
            if not self._quick:
                self._clear.set()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Wait until no call is under way, and keep all others waiting."""
        async with self._turnstile:
            await self._clear.wait()
            yield
