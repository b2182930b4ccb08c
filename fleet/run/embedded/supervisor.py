"""Restarts an embedded server when it dies."""

import asyncio
import logging
from collections import deque
from typing import Protocol

from fleet.ground.errors import FleetError, Unavailable
from fleet.ground.metrics.process import embedded_restarts
from fleet.ground.tasks import Backoff

log = logging.getLogger(__name__)

MOST_STARTS = 5
"""Most restarts within WITHIN_SECONDS: further restarts would not remove the cause."""
WITHIN_SECONDS = 300.0


class EmbeddedServer(Protocol):
    """A server that can be started again at the same address."""

    async def start(self) -> None:
        """Return when it answers; raise `FleetError` if it does not."""

    async def run(self) -> None:
        """Wait until it ends, then raise `Unavailable`; stop it when cancelled."""


async def supervise(part: str, server: EmbeddedServer) -> None:
    """Restart the server whenever it ends by itself, until cancelled.

    Args:
        part: One of `fleet.ground.metrics.process.EMBEDDED`.
        server: A server that has been started.

    Raises:
        Unavailable: It was started too often within five minutes; the message has its last output.
    """
    clock, pauses = asyncio.get_running_loop().time, Backoff(first=0.1, limit=5.0)
    starts, attempt = deque[float](maxlen=MOST_STARTS), server.run
    while True:
        try:
            await attempt()
            attempt = server.run
            log.warning("embedded server is back", extra={"part": part})
            continue
        except FleetError as error:
            fault = error
        now = clock()
        if len(starts) == MOST_STARTS and now - starts[0] < WITHIN_SECONDS:
            raise Unavailable(f"the embedded {part} died again after {MOST_STARTS} starts: {fault}") from fault
        if starts and now - starts[-1] > WITHIN_SECONDS:
            pauses.reset()
        starts.append(now)
        log.error("embedded server died, restarting it", extra={"part": part, "reason": str(fault)})
        embedded_restarts.add(part)
        await pauses.pause()
        attempt = server.start
