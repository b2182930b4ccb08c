"""Work for one device is done one piece after another, work for different devices side by side."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine

from fleet.tasks import isolate

Spawn = Callable[[str, Coroutine[None, None, None]], asyncio.Task[None]]
Work = Callable[[], Awaitable[None]]


class Lanes:
    """A lane exists only while its device has work, so an idle device costs no memory.

    The number of waiting pieces is bounded by the callers, who each wait for their piece.

    Args:
        spawn: Starts a task in the task group that owns the lanes.
    """

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn
        self._lanes: dict[str, deque[tuple[Work, asyncio.Future[None]]]] = {}

    async def run(self, mac: str, work: Work) -> None:
        """Wait until the work was done, after all work that was given for the device before."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        lane = self._lanes.get(mac)
        if lane is None:
            lane = deque()
            self._spawn(f"lane {mac}", self._drain(mac, lane))
            self._lanes[mac] = lane
        lane.append((work, done))
        await done

    async def _drain(self, mac: str, lane: deque[tuple[Work, asyncio.Future[None]]]) -> None:
        try:
            while lane:
                work, done = lane.popleft()
                await isolate(f"device {mac}", work())
                if not done.done():
                    done.set_result(None)
        finally:
            del self._lanes[mac]
            for _, waiting in lane:
                waiting.cancel()
