"""Whether a process can serve requests: the state of its parts, checked on demand."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

from fleet.ground.errors import Unavailable
from fleet.ground.metrics import process

LIMIT_SECONDS = 1.0
"""For each part; probes seldom have a longer limit."""

Check = Callable[[], bool]
Ping = Callable[[], Awaitable[None]]


class Readiness:
    """The required parts of a process, and whether it has started and is not stopping."""

    def __init__(self) -> None:
        self._checks: list[tuple[str, Check]] = []
        self._pings: list[tuple[str, Ping]] = []
        self._well: dict[str, bool] = {}
        self._state = "starting"

    @contextmanager
    def requiring(self, part: str, check: Check) -> Iterator[None]:
        """Check a part during the block: it is ready when `check` returns True; with several checks, when all do.

        Args:
            part: One of `fleet.ground.metrics.process.PARTS`.
            check: Returns at once.
        """
        entry = (part, check)
        self._checks.append(entry)
        try:
            yield
        finally:
            self._checks.remove(entry)

    @contextmanager
    def pinging(self, part: str, ping: Ping) -> Iterator[None]:
        """Check a part during the block: it is ready when `ping` returns, not when it raises `Unavailable`."""
        entry = (part, ping)
        self._pings.append(entry)
        try:
            yield
        finally:
            self._pings.remove(entry)

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Mark the process as started for the duration of the block."""
        self._state = ""
        try:
            yield
        finally:
            self._state = "leaving"

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the parts as metrics during the block."""
        with ExitStack() as stack:
            for part in process.PARTS:
                stack.enter_context(process.ready.following(partial(self._read, part), part))
            yield

    @property
    def parts(self) -> Mapping[str, bool]:
        """Which parts were well when `look` was called last."""
        return self._well

    async def look(self) -> str:
        """Check all parts; return why the process is not ready, empty if it is."""
        faults = [(part, "") for part, check in self._checks if not check()]
        for part, ping in list(self._pings):
            if reason := await _try(ping):
                faults.append((part, reason))
        ill = {part for part, _ in faults}
        self._well = {part: part not in ill for part, _ in (*self._checks, *self._pings)}
        described = [f"{part}: {reason}" if reason else part for part, reason in dict.fromkeys(faults)]
        return ", ".join([self._state, *described] if self._state else described)

    def _read(self, part: str) -> float | None:
        well = self._well.get(part)
        return None if well is None else float(well)


async def _try(ping: Ping) -> str:
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            await ping()
    except (Unavailable, TimeoutError) as error:
        return str(error) or "no answer in time"
    return ""
