"""Tells in the log when this process has no file descriptors left.

The event loop closes connections that it has no descriptor for and says nothing, and what else needs one fails with
`Too many open files` somewhere. So this looks itself, once a second.
"""

import asyncio
import errno
import logging
import os
import resource

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
TELL_SECONDS = 60.0
"""At most one line in this time."""
WANTED = 65_536
"""As many as a process takes for itself, where its hard limit allows it."""

_ADVICE = "connections are refused; raise the limit: ulimit -n, LimitNOFILE= of systemd, or --ulimit nofile= of Docker"


def raise_limit() -> None:
    """Take as many descriptors as this process may have: many systems give 1,024 until one asks."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def watch_descriptors() -> None:
    """Look until cancelled."""
    loop, told, short = asyncio.get_running_loop(), float("-inf"), False
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        if _are_left():
            if short:
                log.info("file descriptors are free again")
            short = False
        elif loop.time() - told >= TELL_SECONDS:
            told, short = loop.time(), True
            limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            log.error("file descriptors ran out", extra={"limit": limit, "advice": _ADVICE})


def _are_left() -> bool:
    try:
        os.close(os.dup(2))
    except OSError as error:
        return error.errno not in (errno.EMFILE, errno.ENFILE)
    return True
