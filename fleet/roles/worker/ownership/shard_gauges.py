"""The gauges of a worker's shards."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from fleet.adapters.redis.shards.shard_counts import ShardCounter, ShardCounts, entry_order
from fleet.ground.metrics import broker, calls
from fleet.ground.tasks import Backoff, keep_running
from fleet.roles.worker.ownership.shard import Shard

PAUSE_SECONDS = 5.0


class ShardGauges:
    """Counts the devices, calls and inbox entries of the owned shards, every few seconds.

    Args:
        counter: Counts with Redis commands.
        owned: Returns the shards that this worker owns now.
        read: Returns the id of the last inbox entry read, by owned shard.
    """

    def __init__(
        self, counter: ShardCounter, owned: Callable[[], Mapping[int, Shard]], read: Callable[[], Mapping[int, str]]
    ) -> None:
        self._counter = counter
        self._owned = owned
        self._read = read
        self._count = ShardCounts()

    async def run(self) -> None:
        """Count until cancelled."""
        backoff = Backoff(first=PAUSE_SECONDS, limit=PAUSE_SECONDS)
        await keep_running("shard gauges", self._repeat, backoff)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Export the gauges as metrics during the block."""
        with ExitStack() as stack:
            show = stack.enter_context
            show(broker.devices.following(lambda: self._count.devices))
            show(calls.pending.following(lambda: self._count.pending))
            show(broker.inbox_lag.following(self._lag))
            show(broker.shards.following(lambda: len(self._owned())))
            show(broker.disconnected.following(lambda: sum(not shard.connected for shard in self._owned().values())))
            yield

    async def _repeat(self) -> None:
        while True:
            self._count = await self._counter.take(self._read())
            await asyncio.sleep(PAUSE_SECONDS)

    def _lag(self) -> float:
        """Return the age of the oldest unread entry in seconds.

        Its time comes from the clock of Redis, so a difference of the two clocks falsifies the result. Entries that
        were read since the count are left out.
        """
        read = self._read()
        found = ((entry_order(entry), read.get(shard)) for shard, entry in self._count.unread.items())
        waiting = [written for (written, number), last in found if last and (written, number) > entry_order(last)]
        return max(0.0, time.time_ns() / 1e9 - min(waiting) / 1000) if waiting else 0.0
