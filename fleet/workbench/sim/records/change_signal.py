"""Waiting for a change of the device."""

import asyncio
from collections.abc import Callable


class ChangeSignal:
    """Wakes every waiter to check its condition again; a notification without waiters has no effect."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def notify(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until `holds()` is true; it may only change along with a notification."""
        while not holds():
            await self._event.wait()

    async def within(self, seconds: float, holds: Callable[[], bool]) -> bool:
        """Wait like `until`, but no longer than this; return whether it holds."""
        try:
            async with asyncio.timeout(seconds):
                await self.until(holds)
        except TimeoutError:
            return holds()
        return True
