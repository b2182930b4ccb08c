"""Logs when this process has no file descriptors left.

The event loop then drops new connections silently, and other operations fail with `Too many open files`. So this module
checks once a second.
"""

import asyncio
import errno
import logging
import os
import resource

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
LOG_SECONDS = 60.0
"""Least time between two lines."""
WANTED = 65_536
"""The soft limit that a process sets for itself, if its hard limit allows it."""

_ADVICE = "connections are refused; raise the limit: ulimit -n, LimitNOFILE= of systemd, or --ulimit nofile= of Docker"


def raise_limit() -> None:
    """Raise the soft limit of descriptors: its default is 1,024 on many systems."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def watch_descriptors() -> None:
    """Check until cancelled."""
    loop, logged_at, short = asyncio.get_running_loop(), float("-inf"), False
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        if _are_left():
            if short:
                log.info("file descriptors are free again")
            short = False
        elif loop.time() - logged_at >= LOG_SECONDS:
            logged_at, short = loop.time(), True
            limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            log.error("file descriptors ran out", extra={"limit": limit, "advice": _ADVICE})


def _are_left() -> bool:
    try:
        os.close(os.dup(2))
    except OSError as error:
        return error.errno not in (errno.EMFILE, errno.ENFILE)
    return True
