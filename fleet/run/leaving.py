"""How a role has a name among its like, and ends."""

import asyncio
import logging
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

log = logging.getLogger(__name__)

LEAVE_SECONDS = 5.0
"""Longest time to say goodbye, beyond the time for turns."""


def new_name() -> str:
    """Return a name for this process: where it runs, and which of many it is."""
    return f"{socket.gethostname()[:20]}-{secrets.token_hex(4)}"


@asynccontextmanager
async def limited(role: str, seconds: float) -> AsyncIterator[None]:
    """Limit the end of a role: the time for its turns, and some for what must be said after them."""
    log.info("leaving", extra={"role": role})
    try:
        async with asyncio.timeout(seconds + LEAVE_SECONDS):
            yield
    except TimeoutError:
        log.warning("left before everything was handed over", extra={"role": role})
