"""When the embedded broker begins anew: it keeps some 17 KB for every device that it ever met, and has no bound."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fleet.ground.errors import Unavailable
from fleet.run.embedded.broker import EmbeddedBroker

log = logging.getLogger(__name__)

MOST_DEVICES: Final = 20_000
"""Devices that one run of the broker may meet; the front lets no other one in."""
LARGEST_MEMORY: Final = 512 * 1024 * 1024
"""Bytes. 20,000 devices take 340 MB; the rest are the messages that it keeps for them."""
QUIET_PART: Final = 0.5
"""Of either bound; beyond it the broker begins anew as soon as nobody speaks."""
LOOK_SECONDS: Final = 5.0
PAUSE_SECONDS: Final = 600.0
"""Shortest time between two beginnings: each costs every device its connection, for ten seconds."""


class Renewal:
    """Lets the broker begin anew before its memory grows beyond all bounds.

    Args:
        broker: Which one.
        met: Returns how many devices it has met since it began.
        quiet: Returns whether nobody speaks.
        forget: Called when it has met nobody any more.
    """

    def __init__(
        self, broker: EmbeddedBroker, met: Callable[[], int], quiet: Callable[[], bool], forget: Callable[[], None]
    ) -> None:
        self._broker = broker
        self._met = met
        self._quiet = quiet
        self._forget = forget

    @property
    def memory(self) -> int:
        """Resident memory of the broker in bytes; 0 while it does not run."""
        try:
            pages = Path(f"/proc/{self._broker.pid}/statm").read_text(encoding="ascii").split()[1]
        except OSError:  # also on systems without /proc: then only devices are counted
            return 0
        return int(pages) * 4096

    async def run(self) -> None:
        """Watch until cancelled."""
        loop = asyncio.get_running_loop()
        renewed = loop.time() - PAUSE_SECONDS
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if loop.time() - renewed >= PAUSE_SECONDS and self.is_due():
                renewed = loop.time()
                try:
                    await self.renew()
                except Unavailable as error:
                    # Whoever keeps the broker alive starts it once more.
                    log.warning("embedded broker did not begin anew", extra={"reason": str(error)})

    def is_due(self) -> bool:
        """Whether the broker is to begin anew now."""
        full = max(self._met() / MOST_DEVICES, self.memory / LARGEST_MEMORY)
        return full >= 1 or (full >= QUIET_PART and self._quiet())

    async def renew(self) -> None:
        """Let it begin anew; the devices come back by themselves.

        Raises:
            Unavailable: It does not start again.
        """
        megabytes = self.memory // (1024 * 1024)
        log.warning("embedded broker begins anew", extra={"devices": self._met(), "memory_mb": megabytes})
        await self._broker.renew()
        self._forget()
