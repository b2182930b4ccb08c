"""Order the calls of one device: quick ones run concurrently, a slow one alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class CallGate:
    """Admits calls in their order.

    A device runs one call at a time: a quick call that waited on the device behind a slow one would time out.
    """

    def __init__(self) -> None:
        self._entry = asyncio.Lock()
        self._quick = 0
        self._clear = asyncio.Event()
        self._clear.set()

    def side_by_side(self) -> "_Quick":
        """Wait until no slow call runs, then run the block."""
        return _Quick(self)

    async def enter(self) -> None:
        """Begin a quick call, as soon as no slow one runs."""
        async with self._entry:
            self._quick += 1
            self._clear.clear()

    def leave(self) -> None:
        """End a quick call."""
        self._quick -= 1
        if not self._quick:
            self._clear.set()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Wait until no call runs, then run the block while all others wait."""
        async with self._entry:
            await self._clear.wait()
            yield


class _Quick:
    """The block of a quick call; a generator costs twice as much."""

    __slots__ = ("_gate",)

    def __init__(self, gate: CallGate) -> None:
        self._gate = gate

    async def __aenter__(self) -> None:
        await self._gate.enter()

    async def __aexit__(self, *_: object) -> None:
        self._gate.leave()
