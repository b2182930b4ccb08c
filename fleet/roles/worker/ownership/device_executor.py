"""Work for one device is done one piece after another, work for different devices side by side."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Protocol

from fleet.ground.errors import Fenced, Unavailable
from fleet.ground.tasks import isolate

Spawn = Callable[[str, Coroutine[None, None, None]], asyncio.Task[object]]


class DeviceWork(Protocol):
    """One piece of work for a device."""

    async def run(self) -> None:
        """Do it."""


_Waiting = deque[tuple[DeviceWork, asyncio.Future[None] | None]]


class DeviceExecutor:
    """A device's queue exists only while the device has work, so an idle device costs no memory.

    The number of waiting pieces is bounded by the callers. A piece whose caller has stopped waiting before it began is
    left out: whoever brings it again begins anew.

    Args:
        spawn: Starts a task in the task group that owns the queues.
    """

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn
        self._queues: dict[str, _Waiting] = {}

    def submit(self, mac: str, work: DeviceWork, done: asyncio.Future[None] | None = None) -> None:
        """Queue work behind all that was given for the device before.

        Args:
            mac: The device.
            work: Nobody waits for it, unless there is `done`: its failures are logged.
            done: Set when the work was done.

        Raises:
            Unavailable: The shard is being given up.
        """
        queue = self._queues.get(mac)
        if queue is None:
            queue = deque()
            self._spawn(f"device {mac}", self._drain(mac, queue))
            self._queues[mac] = queue
        queue.append((work, done))

    async def run(self, mac: str, work: DeviceWork) -> None:
        """Wait until the work was done, after all work that was given for the device before.

        Raises:
            Unavailable: The work failed so; another attempt may succeed. Other failures are logged.
            Fenced: The same, in another process.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.submit(mac, work, done)
        await done

    async def _drain(self, mac: str, queue: _Waiting) -> None:
        try:
            while queue:
                work, done = queue.popleft()
                if done is None:
                    await isolate(f"device {mac}", work.run())
                elif not done.cancelled():
                    _settle(done, await isolate(f"device {mac}", work.run(), (Unavailable, Fenced)))
        finally:
            del self._queues[mac]
            for _, waiting in queue:
                if waiting is not None:
                    waiting.cancel()


def _settle(done: asyncio.Future[None], failure: Exception | None) -> None:
    if done.done():
        return
    if isinstance(failure, Unavailable | Fenced):
        done.set_exception(failure)
    else:
        done.set_result(None)
