"""Notices to shards that nobody waits for."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable

from fleet.ground.errors import FleetError
from fleet.wire.edge_messages import EdgeEvent

log = logging.getLogger(__name__)

LONGEST = 1024
"""Notices that wait; more are dropped and counted."""


class NotificationQueue:
    """Posts notices in order.

    Args:
        post: Delivers one mail; bounded in time.
        counters: Counts what was not delivered.
    """

    def __init__(self, post: Callable[[int, EdgeEvent], Awaitable[None]], counters: Counter[str]) -> None:
        self._post = post
        self._counters = counters
        self._queue: asyncio.Queue[tuple[int, EdgeEvent]] = asyncio.Queue(LONGEST)

    def put(self, shard: int, mail: EdgeEvent) -> None:
        """Queue a notice; dropped and counted when too many wait."""
        try:
            self._queue.put_nowait((shard, mail))
        except asyncio.QueueFull:
            self._counters["outbox_full"] += 1

    async def run(self) -> None:
        """Deliver until cancelled; a notice that cannot be delivered is logged and given up."""
        while True:
            shard, mail = await self._queue.get()
            try:
                await self._post(shard, mail)
            except (FleetError, TimeoutError) as error:
                self._counters["outbox_failed"] += 1
                log.warning(
                    "notice not delivered", extra={"device": mail.device, "notice": mail.kind, "reason": str(error)}
                )
