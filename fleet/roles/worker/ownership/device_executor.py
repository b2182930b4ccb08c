"""Run the work of one device serially, the work of different devices concurrently."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from fleet.ground.eager_tasks import start_now
from fleet.ground.errors import Fenced, Unavailable
from fleet.ground.log import bind
from fleet.ground.tasks import Ended, isolate

DeviceWork = Callable[[], Awaitable[None]]
"""One piece of work for a device."""

_Waiting = deque[tuple[DeviceWork, Ended | None]]


class DeviceExecutor:
    """Runs the work of each device in order.

    A device's queue exists only while the device has work, so an idle device costs no memory. The callers bound the
    number of waiting pieces. Work whose `ended` is set or cancelled before it has begun is skipped.

    Args:
        group: Owns the queues.
    """

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._queues: dict[str, _Waiting] = {}

    def has_work(self, mac: str) -> bool:
        """Whether work of the device runs or waits."""
        return mac in self._queues

    def submit(self, mac: str, work: DeviceWork, ended: Ended | None = None) -> None:
        """Queue work behind all earlier work of the device; without earlier work it begins at once.

        Args:
            mac: The device.
            work: Begins the work. Without `ended` all its failures are logged.
            ended: Set when the work has ended; then `Unavailable` and `Fenced` are not logged.

        Raises:
            Unavailable: The shard is being given up.
        """
        queue = self._queues.get(mac)
        if queue is not None:
            queue.append((work, ended))
            return
        queue = self._queues[mac] = deque(((work, ended),))
        drain = self._drain(mac, queue)
        try:
            start_now(self._group, f"device {mac}", drain)
        except RuntimeError:
            drain.close()
            del self._queues[mac]
            raise Unavailable("the shard is being given up") from None

    def follow(self, mac: str, begun: asyncio.Future[bool], work: DeviceWork, ended: Ended) -> None:
        """Set `ended` when what has begun outside of the queue has ended; after its failure submit `work` instead."""

        def follow(begun: asyncio.Future[bool]) -> None:
            failed = begun.cancelled() or begun.exception() is not None
            if ended.done():
                return
            if not failed:
                ended.set_result(None)
                return
            try:
                self.submit(mac, work, ended)
            except Unavailable as error:
                ended.set_result(error)

        if begun.done():
            follow(begun)
        else:
            begun.add_done_callback(follow)

    async def run(self, mac: str, work: DeviceWork) -> None:
        """Run work after all earlier work of the device, and wait for its end.

        Raises:
            Unavailable: The work raised it; another attempt may succeed. Failures of other kinds are logged.
            Fenced: The work raised it; another worker owns the shard.
        """
        ended: Ended = asyncio.get_running_loop().create_future()
        self.submit(mac, work, ended)
        failure = await ended
        if isinstance(failure, Unavailable | Fenced):
            raise failure

    async def _drain(self, mac: str, queue: _Waiting) -> None:
        bind(device=mac)
        what = f"device {mac}"
        ended: Ended | None = None
        try:
            while queue:
                work, ended = queue.popleft()
                if ended is None:
                    await isolate(what, work())
                elif not ended.done():
                    failure = await isolate(what, work(), (Unavailable, Fenced))
                    if not ended.done():
                        ended.set_result(failure)
        except asyncio.CancelledError:
            for one in (ended, *(waiting for _, waiting in queue)):
                if one is not None:
                    one.cancel()
            raise
        finally:
            del self._queues[mac]
