"""Bounds the memory of the embedded broker: rumqttd keeps about 17 KB for each device that ever connected."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fleet.ground.errors import Unavailable
from fleet.run.embedded.broker import EmbeddedBroker

log = logging.getLogger(__name__)

MOST_DEVICES: Final = 20_000
"""Devices that may connect between two restarts of the broker; the front refuses more."""
LARGEST_MEMORY: Final = 512 * 1024 * 1024
"""Bytes. 20,000 devices take 340 MB; the rest is for the messages that the broker keeps for them."""
IDLE_SHARE: Final = 0.5
"""Share of either bound above which the broker is restarted as soon as no device has a session."""
CHECK_SECONDS: Final = 5.0
LEAST_INTERVAL: Final = 600.0
"""Seconds between two restarts: each disconnects every device for about ten seconds."""


class BrokerRestarter:
    """Restarts the embedded broker before its memory exceeds the bounds.

    Args:
        broker: The embedded broker.
        devices: Returns the number of devices that connected since the broker's last start.
        idle: Returns whether no device has a session.
        on_restart: Called after a restart; resets the number of devices.
    """

    def __init__(
        self,
        broker: EmbeddedBroker,
        devices: Callable[[], int],
        idle: Callable[[], bool],
        on_restart: Callable[[], None],
    ) -> None:
        self._broker = broker
        self._devices = devices
        self._idle = idle
        self._on_restart = on_restart

    @property
    def memory(self) -> int:
        """Resident memory of the broker in bytes; 0 while it does not run."""
        try:
            pages = Path(f"/proc/{self._broker.pid}/statm").read_text(encoding="ascii").split()[1]
        except OSError:  # also on systems without /proc: then only devices are counted
            return 0
        return int(pages) * 4096

    async def run(self) -> None:
        """Check the bounds until cancelled."""
        loop = asyncio.get_running_loop()
        restarted = loop.time() - LEAST_INTERVAL
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            if loop.time() - restarted >= LEAST_INTERVAL and self.is_due():
                restarted = loop.time()
                try:
                    await self.restart()
                except Unavailable as error:
                    # The broker's supervisor tries again.
                    log.warning("embedded broker did not restart", extra={"reason": str(error)})

    def is_due(self) -> bool:
        """Whether the broker must be restarted now."""
        used = max(self._devices() / MOST_DEVICES, self.memory / LARGEST_MEMORY)
        return used >= 1 or (used >= IDLE_SHARE and self._idle())

    async def restart(self) -> None:
        """Restart the broker; devices reconnect by themselves.

        Raises:
            Unavailable: The broker did not start again.
        """
        megabytes = self.memory // (1024 * 1024)
        log.warning("restarting the embedded broker", extra={"devices": self._devices(), "memory_mb": megabytes})
        await self._broker.restart()
        self._on_restart()
