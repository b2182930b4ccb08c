"""Run the work of one device serially, the work of different devices concurrently."""

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
        """Do the work."""


_Waiting = deque[tuple[DeviceWork, asyncio.Future[None] | None]]


class DeviceExecutor:
    """Runs the work of each device in order.

    A device's queue exists only while the device has work, so an idle device costs no memory. The callers bound the
    number of waiting pieces. If a caller of `run` is cancelled before its work has begun, the work is skipped.

    Args:
        spawn: Starts a task in the task group that owns the queues; the task may begin at once.
    """

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn
        self._queues: dict[str, _Waiting] = {}

    def submit(self, mac: str, work: DeviceWork, done: asyncio.Future[None] | None = None) -> None:
        """Queue work behind all earlier work of the device.

        Args:
            mac: The device.
            work: Without `done` its failures are only logged.
            done: Gets the result when the work has ended.

        Raises:
            Unavailable: The shard is being given up.
        """
        queue = self._queues.get(mac)
        if queue is not None:
            queue.append((work, done))
            return
        queue = self._queues[mac] = deque([(work, done)])
        try:
            self._spawn(f"device {mac}", self._drain(mac, queue))
        except Unavailable:
            del self._queues[mac]
            raise

    async def run(self, mac: str, work: DeviceWork) -> None:
        """Run work after all earlier work of the device, and wait for its end.

        Raises:
            Unavailable: The work raised it; another attempt may succeed. Failures of other kinds are logged.
            Fenced: The work raised it; another worker owns the shard.
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
