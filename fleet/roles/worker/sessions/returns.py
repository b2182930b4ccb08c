"""Devices that came back without a session, and may not know that the last one is over."""

import asyncio
import logging

from fleet.ground.errors import FleetError
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.turns.apologies import Apologies
from fleet.wire.messages import GoodbyeCommand

log = logging.getLogger(__name__)

GRACE_SECONDS = 1.0
"""How long a device that came back may say hello first.

Firmware that was asked while it was offline connects and says hello at once, and takes a goodbye of its last session
for one of the new session (application.cc, CloseAudioChannel while connecting). Any other device waits for it at most
two seconds (contract 2.3, M10).
"""
MOST_WAITING = 20_000
"""Devices of one worker that wait at a time; one more is sent its goodbye at once."""


class ReturnedDevices:
    """Says goodbye in the name of a session that is over, unless the device begins a new one first.

    Args:
        apologies: Shows what the device is owed after the goodbye.
    """

    def __init__(self, apologies: Apologies) -> None:
        self._apologies = apologies
        self._waiting: dict[str, asyncio.TimerHandle] = {}

    def expect(self, shard: Shard, mac: str, session: str, dialect: str, *, apology: bool) -> None:
        """The device came back, and may still listen or speak in this session; it may be owed an apology."""
        self.settle(mac)
        if len(self._waiting) >= MOST_WAITING:
            self._end(shard, mac, session, dialect, apology)
            return
        loop = asyncio.get_running_loop()
        self._waiting[mac] = loop.call_later(GRACE_SECONDS, self._end, shard, mac, session, dialect, apology)

    def settle(self, mac: str) -> None:
        """The device said what it does now, or is gone again."""
        waiting = self._waiting.pop(mac, None)
        if waiting is not None:
            waiting.cancel()

    def _end(self, shard: Shard, mac: str, session: str, dialect: str, apology: bool) -> None:
        self._waiting.pop(mac, None)
        try:
            shard.publish(mac, GoodbyeCommand(session), dialect)
            if apology:
                self._apologies.later(shard, mac)
        except FleetError as error:
            log.info("goodbye not repeated", extra={"device": mac, "reason": str(error)})
