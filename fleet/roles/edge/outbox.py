"""Events to shards that are delivered in the background."""

import asyncio
import logging
from collections import Counter

from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.ground.errors import FleetError
from fleet.wire.edge_messages import EdgeEvent

log = logging.getLogger(__name__)

LONGEST = 1024
"""Events that wait at least; what is more is dropped and counted."""
_OF_SESSION = 2
"""Events of a session that ends: what was said of its answer, and that the shard is to say goodbye. An edge that stood
still, or ends, has those of all sessions at once. Who gets no goodbye talks to nobody until the device gives up."""


class NotificationQueue:
    """Delivers events in order.

    Args:
        inboxes: Of the shards; a delivery is bounded in time.
        counters: Count events that were not delivered.
        sessions: Most sessions of the edge.
    """

    def __init__(self, inboxes: Inboxes, counters: Counter[str], sessions: int = 0) -> None:
        self._inboxes = inboxes
        self._counters = counters
        self._queue: asyncio.Queue[tuple[int, EdgeEvent]] = asyncio.Queue(max(LONGEST, _OF_SESSION * sessions))

    def put(self, shard: int, event: EdgeEvent) -> None:
        """Queue an event; it is dropped and counted if too many wait."""
        try:
            self._queue.put_nowait((shard, event))
        except asyncio.QueueFull:
            self._counters["outbox_full"] += 1

    async def run(self) -> None:
        """Deliver until cancelled; log and discard an event that cannot be delivered."""
        while True:
            shard, event = await self._queue.get()
            try:
                await self._inboxes.to_shard(shard, event)
            except (FleetError, TimeoutError) as error:
                self._counters["outbox_failed"] += 1
                log.warning(
                    "event not delivered", extra={"device": event.device, "kind": event.kind, "reason": str(error)}
                )
