"""Wait a bounded time for what a worker writes into Redis."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Final, TypeVar

from fastapi import Query

MOST_WAITING: Final = 256
"""Requests that wait at a time; further ones are answered at once."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.03, 0.25

T = TypeVar("T")
WaitSeconds = Annotated[float, Query(ge=0, le=120, description="Seconds to wait for the end; 0 answers at once.")]


class Waiting:
    """Counts the requests that wait."""

    def __init__(self) -> None:
        self._count = 0

    async def until(self, read: Callable[[], Awaitable[T]], over: Callable[[T], bool], seconds: float) -> T:
        """Read again and again until it is over, or the time is.

        Args:
            read: Reads the state.
            over: Whether a state is final.
            seconds: Longest wait.
        """
        clock, pause, state = asyncio.get_running_loop().time, _FIRST_PAUSE, await read()
        until = clock() + seconds
        if self._count >= MOST_WAITING:
            return state
        self._count += 1
        try:
            while not over(state) and clock() < until:
                await asyncio.sleep(min(pause, max(until - clock(), 0)))
                pause = min(pause * 1.5, _LONGEST_PAUSE)
                state = await read()
        finally:
            self._count -= 1
        return state
