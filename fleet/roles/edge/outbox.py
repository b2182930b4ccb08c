"""Notices to shards that nobody waits for."""

import asyncio
import logging
from collections import Counter

from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.ground.errors import FleetError
from fleet.wire.edge_messages import EdgeEvent

log = logging.getLogger(__name__)

LONGEST = 1024
"""Notices that wait; more are dropped and counted."""


class NotificationQueue:
    """Posts notices in order.

    Args:
        inboxes: Of the shards; a delivery is bounded in time.
        counters: Counts what was not delivered.
    """

    def __init__(self, inboxes: Inboxes, counters: Counter[str]) -> None:
        self._inboxes = inboxes
        self._counters = counters
        self._queue: asyncio.Queue[tuple[int, EdgeEvent]] = asyncio.Queue(LONGEST)

    def put(self, shard: int, event: EdgeEvent) -> None:
        """Queue a notice; dropped and counted when too many wait."""
        try:
            self._queue.put_nowait((shard, event))
        except asyncio.QueueFull:
            self._counters["outbox_full"] += 1

    async def run(self) -> None:
        """Deliver until cancelled; a notice that cannot be delivered is logged and given up."""
        while True:
            shard, event = await self._queue.get()
            try:
                await self._inboxes.to_shard(shard, event)
            except (FleetError, TimeoutError) as error:
                self._counters["outbox_failed"] += 1
                log.warning(
                    "notice not delivered", extra={"device": event.device, "notice": event.kind, "reason": str(error)}
                )
