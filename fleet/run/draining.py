"""The id of a process, and the time limit of its shutdown."""

import asyncio
import logging
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

log = logging.getLogger(__name__)

GOODBYE_SECONDS = 5.0
"""Time for goodbyes, in addition to the time for turns."""


def new_process_id() -> str:
    """Return a unique id for this process: host name and random number."""
    return f"{socket.gethostname()[:20]}-{secrets.token_hex(4)}"


@asynccontextmanager
async def drain_limit(role: str, seconds: float) -> AsyncIterator[None]:
    """Limit the time of the block, in which a role drains: `seconds` for its turns, and GOODBYE_SECONDS more."""
    log.info("leaving", extra={"role": role})
    try:
        async with asyncio.timeout(seconds + GOODBYE_SECONDS):
            yield
    except TimeoutError:
        log.warning("drain limit exceeded, some work was not handed over", extra={"role": role})
