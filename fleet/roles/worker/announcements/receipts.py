"""What the api saw of the clips that devices of the owned shards fetch."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from fleet.adapters.redis.announcements.deliveries import Deliveries, DeliveryRecord, Receipt
from fleet.ground.tasks import Backoff, keep_running
from fleet.roles.worker.ownership.shard import Shard
from fleet.wire.clips import ClipDelivery

_IDLE_PAUSE = 0.2


@dataclass(slots=True)
class AwaitedClip:
    """The receipts of one delivery that are waited for."""

    taken: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class ClipReceipts:
    """Reads the receipts of the owned shards, and wakes whoever waits for them.

    The record of the delivery has the truth; a receipt only says when to look at it.

    Args:
        deliveries: The deliveries in Redis.
        owned: Returns the shards that this worker owns now.
    """

    def __init__(self, deliveries: Deliveries, owned: Callable[[], dict[int, Shard]]) -> None:
        self._deliveries, self._owned = deliveries, owned
        self._read: dict[int, str] = {}
        self._awaited: dict[str, AwaitedClip] = {}

    async def run(self) -> None:
        """Read until cancelled."""
        backoff = Backoff(limit=2.0)
        await keep_running("clip receipts", lambda: self._read_on(backoff), backoff)

    @contextmanager
    def awaiting(self, delivery: ClipDelivery) -> Iterator[AwaitedClip]:
        """Take note of a delivery's receipts during the block; begin it before the device is told."""
        awaited = self._awaited[delivery.id] = AwaitedClip()
        try:
            yield awaited
        finally:
            del self._awaited[delivery.id]

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for an event of a delivery, at most so long; return whether it came."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()
        return event.is_set()

    async def look(self, delivery: ClipDelivery, event: asyncio.Event, seconds: float) -> DeliveryRecord:
        """Wait for an event of a delivery, at most so long; return what is known of the delivery then.

        Raises:
            Unavailable: Redis does not answer.
        """
        await self.wait(event, seconds)
        return await self._deliveries.read(delivery)

    async def _read_on(self, backoff: Backoff) -> None:
        while True:
            shards = self._owned()
            if not shards or not self._awaited:
                await asyncio.sleep(_IDLE_PAUSE)
                continue
            found = await self._deliveries.receipts({number: self._read.get(number, "0") for number in shards})
            backoff.reset()
            for shard, entry, receipt in found:
                self._read[shard] = entry
                self._notice(receipt)

    def _notice(self, receipt: Receipt) -> None:
        awaited = self._awaited.get(receipt.delivery)
        if awaited is not None:
            awaited.taken.set()
            if receipt.seen != "taken":
                awaited.ended.set()
