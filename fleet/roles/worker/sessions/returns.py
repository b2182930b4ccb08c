"""Repeat the goodbye to devices that reconnected after their session had ended."""

import asyncio
import logging

from fleet.ground.errors import FleetError
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.sessions.apologies import Apologies
from fleet.wire.messages import GoodbyeCommand

log = logging.getLogger(__name__)

GRACE_SECONDS = 1.0
"""Time for a device that reconnected to send a hello first.

Firmware that the user woke while it was offline connects and says hello at once. It would apply a goodbye of its last
session to the new session (application.cc, CloseAudioChannel while connecting). Other devices get the goodbye within
two seconds (contract 2.3, M10).
"""
MOST_WAITING = 20_000
"""Devices of one worker that wait at a time; further ones get their goodbye at once."""


class ReturnedDevices:
    """Sends a goodbye for an ended session, unless the device opens a new one first.

    Args:
        apologies: Shows an apology after the goodbye.
    """

    def __init__(self, apologies: Apologies) -> None:
        self._apologies = apologies
        self._waiting: dict[str, asyncio.TimerHandle] = {}

    def schedule(self, shard: Shard, mac: str, session: str, dialect: str, *, apology: bool) -> None:
        """Schedule the goodbye for a device that may still listen or speak in this session.

        Args:
            shard: The device's shard.
            mac: The device.
            session: The ended session.
            dialect: Of the device.
            apology: Whether an apology is still to be shown.
        """
        self.cancel(mac)
        if len(self._waiting) >= MOST_WAITING:
            self._end(shard, mac, session, dialect, apology)
            return
        loop = asyncio.get_running_loop()
        self._waiting[mac] = loop.call_later(GRACE_SECONDS, self._end, shard, mac, session, dialect, apology)

    def cancel(self, mac: str) -> None:
        """Cancel the goodbye: the device sent a hello, or is offline again."""
        waiting = self._waiting.pop(mac, None)
        if waiting is not None:
            waiting.cancel()

    def _end(self, shard: Shard, mac: str, session: str, dialect: str, apology: bool) -> None:
        self._waiting.pop(mac, None)
        try:
            shard.publish(mac, GoodbyeCommand(session), dialect)
            if apology:
                self._apologies.show_later(shard, mac)
        except FleetError as error:
            log.info("goodbye not repeated", extra={"device": mac, "reason": str(error)})
