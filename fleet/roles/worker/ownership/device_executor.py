"""Work for one device is done one piece after another, work for different devices side by side."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine

from fleet.ground.errors import Fenced, Unavailable
from fleet.ground.tasks import isolate

Spawn = Callable[[str, Coroutine[None, None, None]], asyncio.Task[object]]
Work = Callable[[], Awaitable[None]]


class DeviceExecutor:
    """A lane exists only while its device has work, so an idle device costs no memory.

    The number of waiting pieces is bounded by the callers, who each wait for their piece. A piece whose caller has
    stopped waiting before it began is left out: whoever brings it again begins anew.

    Args:
        spawn: Starts a task in the task group that owns the lanes.
    """

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn
        self._lanes: dict[str, deque[tuple[Work, asyncio.Future[None]]]] = {}

    async def run(self, mac: str, work: Work) -> None:
        """Wait until the work was done, after all work that was given for the device before.

        Raises:
            Unavailable: The work failed so; another attempt may succeed. Other failures are logged.
            Fenced: The same, in another process.
        """
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
                if not done.cancelled():
                    await _do(mac, work, done)
        finally:
            del self._lanes[mac]
            for _, waiting in lane:
                waiting.cancel()


async def _do(mac: str, work: Work, done: asyncio.Future[None]) -> None:
    failure = await isolate(f"device {mac}", work(), (Unavailable, Fenced))
    if done.done():
        return
    if isinstance(failure, Unavailable | Fenced):
        done.set_exception(failure)
    else:
        done.set_result(None)
