"""The engines of providers that agents name: opened when one is first needed, and bounded."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Final, Generic, TypeVar

MOST: Final = 32
"""Engines of a pool; the least recently used one is closed for a new one."""
GRACE_SECONDS: Final = 180.0
"""From the moment when an engine leaves the pool until it may be closed: no request to it lasts longer."""

T = TypeVar("T")
Open = Callable[[AsyncExitStack], Awaitable[T]]
"""Opens an engine; what the stack holds is closed with it."""


class EnginePool(Generic[T]):
    """Engines by a key that names everything on which they depend, so that a change of a provider makes a new one.

    Args:
        most: Engines at a time.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._open: OrderedDict[str, tuple[T, AsyncExitStack]] = OrderedDict()
        self._opening: dict[str, asyncio.Lock] = {}
        self._retired: deque[tuple[float, AsyncExitStack]] = deque()
        """Engines that left the pool, with the time when they may be closed."""

    async def find(self, key: str, open_engine: Open[T]) -> T:
        """Return the engine of a key, the same while it is in the pool.

        Raises:
            FleetError: `open_engine` raised it; the next call tries again.
        """
        if known := self._take(key):
            return known
        async with self._opening.setdefault(key, asyncio.Lock()):
            if known := self._take(key):
                return known
            try:
                async with AsyncExitStack() as stack:
                    engine = await open_engine(stack)
                    replaced = self._open.pop(key, None)
                    self._open[key] = engine, stack.pop_all()
            finally:
                self._opening.pop(key, None)
        if replaced:
            self._retire(replaced[1])
        while len(self._open) > self._most:
            self._retire(self._open.popitem(last=False)[1][1])
        await self._close_retired()
        return engine

    async def aclose(self) -> None:
        """Close all engines."""
        for _, stack in (*self._retired, *self._open.values()):
            await stack.aclose()
        self._retired.clear()
        self._open.clear()

    def _take(self, key: str) -> T | None:
        if key not in self._open:
            return None
        self._open.move_to_end(key)
        return self._open[key][0]

    def _retire(self, stack: AsyncExitStack) -> None:
        self._retired.append((asyncio.get_running_loop().time() + GRACE_SECONDS, stack))

    async def _close_retired(self) -> None:
        """Close the engines that left the pool long ago, and the oldest of too many."""
        now = asyncio.get_running_loop().time()
        while self._retired and (self._retired[0][0] <= now or len(self._retired) > self._most):
            await self._retired.popleft()[1].aclose()
