"""Whether a process could serve somebody now: all of its parts, each asked when somebody wants to know."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager

from fleet.errors import Unavailable
from fleet.metrics import process

LIMIT_SECONDS = 1.0
"""For each part; a probe's own limit is seldom longer."""

Ping = Callable[[], Awaitable[None]]


class Readiness:
    """The parts of a process that must be well, and whether it has all of them yet and still."""

    def __init__(self) -> None:
        self._checks: dict[str, Callable[[], bool]] = {}
        self._pings: dict[str, Ping] = {}
        self._well: dict[str, bool] = {}
        self._state = "starting"

    @contextmanager
    def requiring(self, part: str, check: Callable[[], bool]) -> Iterator[None]:
        """Ask a part during the block: it is well when `check` returns True.

        Args:
            part: One of `fleet.metrics.process.PARTS`.
            check: Costs nothing.
        """
        self._checks[part] = check
        with self._shown(part):
            yield

    @contextmanager
    def pinging(self, part: str, ping: Ping) -> Iterator[None]:
        """Ask a part during the block: it is well when `ping` returns, and not when it raises `Unavailable`."""
        self._pings[part] = ping
        with self._shown(part):
            yield

    @contextmanager
    def serving(self) -> Iterator[None]:
        """All parts are there from the block's beginning to its end."""
        self._state = ""
        try:
            yield
        finally:
            self._state = "leaving"

    async def look(self) -> str:
        """Ask all parts; return why the process is not ready, nothing when it is."""
        faults = [self._state] if self._state else []
        for part, check in self._checks.items():
            self._well[part] = check()
            faults += [] if self._well[part] else [part]
        for part, ping in list(self._pings.items()):
            reason = await _try(ping)
            self._well[part] = not reason
            faults += [f"{part}: {reason}"] if reason else []
        return ", ".join(faults)

    @contextmanager
    def _shown(self, part: str) -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(process.ready.following(lambda: float(self._well.get(part, False)), part))
            stack.callback(self._checks.pop, part, None)
            stack.callback(self._pings.pop, part, None)
            yield


async def _try(ping: Ping) -> str:
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            await ping()
    except (Unavailable, TimeoutError) as error:
        return str(error) or "no answer in time"
    return ""
