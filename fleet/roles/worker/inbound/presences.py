"""Presences that wait: few are recorded at a time, and of one device only the newest."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from fleet.ground.metrics import broker as metrics
from fleet.ground.tasks import Ended
from fleet.roles.worker.ownership.waiting_presence import WaitingPresence
from fleet.wire import presence
from fleet.wire.presence import Presence

log = logging.getLogger(__name__)

MOST_AT_ONCE: Final = 32
"""Presences of all shards that a worker records at a time: half of the commands that its Redis client sends at once.

All devices connect again when the broker restarts. Without a bound each shard asks Redis for a thousand of them, most
wait there longer than a command may take, and are asked again: then nearly all work is for nothing."""


class Presences:
    """The presences of a worker's devices that it has received and not recorded yet: as many as its sessions hold.

    Args:
        most: How many are recorded at a time.
    """

    def __init__(self, most: int = MOST_AT_ONCE) -> None:
        self._places = asyncio.Semaphore(most)
        self._newest: dict[str, WaitingPresence] = {}

    def expect(self, mac: str, payload: bytes, ended: Ended) -> WaitingPresence:
        """Note a presence as it arrives. It ends an older one of the device, unless that is just being recorded.

        One with a lower epoch ends nothing: another broker may be behind, and Redis decides between them.
        """
        message = presence.parse(payload)
        waiting = WaitingPresence(message, ended)
        if message is None:
            return waiting
        older = self._newest.get(mac)
        if (
            older
            and older.message
            and older.message.epoch <= message.epoch
            and not (older.recording or older.ended.done())
        ):
            metrics.presences_replaced.add()
            older.ended.set_result(None)
        self._newest[mac] = waiting
        ended.add_done_callback(lambda _: self._forget(mac, waiting))
        return waiting

    @asynccontextmanager
    async def place(self, waiting: WaitingPresence) -> AsyncIterator[Presence | None]:
        """Wait for a place to record a presence; None if it is malformed, or a newer one ended it meanwhile."""
        if waiting.message is None:
            metrics.malformed.add("presence")
            log.warning("malformed presence")
            yield None
            return
        async with self._places:
            waiting.recording = not waiting.ended.done()
            try:
                yield waiting.message if waiting.recording else None
            finally:
                waiting.recording = False

    def _forget(self, mac: str, waiting: WaitingPresence) -> None:
        if self._newest.get(mac) is waiting:
            del self._newest[mac]
