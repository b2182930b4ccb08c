"""The name of a process, and the time limit of its end."""

import asyncio
import logging
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

log = logging.getLogger(__name__)

GOODBYE_SECONDS = 5.0
"""Longest time for goodbyes, beyond the time for turns."""


def new_process_id() -> str:
    """Return a unique name for this process: the host and a random number."""
    return f"{socket.gethostname()[:20]}-{secrets.token_hex(4)}"


@asynccontextmanager
async def drain_limit(role: str, seconds: float) -> AsyncIterator[None]:
    """Limit the end of a role: `seconds` for its turns, and GOODBYE_SECONDS more."""
    log.info("leaving", extra={"role": role})
    try:
        async with asyncio.timeout(seconds + GOODBYE_SECONDS):
            yield
    except TimeoutError:
        log.warning("left before everything was handed over", extra={"role": role})
