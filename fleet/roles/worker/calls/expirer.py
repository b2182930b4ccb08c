"""End calls whose deadline has passed: the worker that waited for them may have died."""

import asyncio
import logging
from collections.abc import Callable, Iterable

from fleet.adapters.redis.sessions.calls import CallTable
from fleet.ground.tasks import Backoff, keep_running

log = logging.getLogger(__name__)

PAUSE_SECONDS = 1.0


class CallExpirer:
    """Ends the overdue calls of the owned shards."""

    def __init__(self, calls: CallTable, owned: Callable[[], Iterable[int]]) -> None:
        self._calls = calls
        self._owned = owned

    async def run(self) -> None:
        backoff = Backoff(limit=5.0)
        await keep_running("call expirer", lambda: self._repeat(backoff), backoff)

    async def _repeat(self, backoff: Backoff) -> None:
        while True:
            for shard in list(self._owned()):
                for mac, number in await self._calls.sweep(shard):
                    log.warning("call ended without an answer", extra={"device": mac, "id": number})
            backoff.reset()
            await asyncio.sleep(PAUSE_SECONDS)
