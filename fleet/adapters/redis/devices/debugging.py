"""Devices in debug mode: every process writes all their log lines for a limited time."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, cast

from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import ConfigError
from fleet.ground.tasks import Backoff, keep_running

LOOK_SECONDS = 1.0
MOST = 50
"""Devices in debug mode at a time: each one costs log lines."""
LONGEST_MINUTES = 24 * 60

_MACS = "debugged"
"""Sorted set of devices by the time when their debug mode ends."""


class DebuggedDevices:
    """Reads and changes the list."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def set(self, mac: str, seconds: float) -> None:
        """Set how long a canonical MAC is in debug mode from now on; 0 ends it.

        Raises:
            ConfigError: Too many other devices are in debug mode.
            Unavailable: Redis did not answer.
        """
        if seconds > 0 and len(await self.read() - {mac}) >= MOST:
            raise ConfigError(f"{MOST} devices are looked at already; end one with --minutes 0")
        now = _now()
        pipe = self._store.client.pipeline(transaction=False)
        pipe.zadd(_MACS, {mac: now + seconds})
        pipe.zremrangebyscore(_MACS, "-inf", now)
        pipe.expire(_MACS, LONGEST_MINUTES * 60)
        await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))

    async def read(self) -> frozenset[str]:
        """Return the devices in debug mode.

        Raises:
            Unavailable: Redis did not answer.
        """
        found = self._store.client.zrangebyscore(_MACS, f"({_now()}", "+inf", start=0, num=MOST)
        return frozenset(await self._store.ask(cast("Awaitable[list[str]]", found)))


class DebugWatch:
    """Reports every change of the list; while Redis is away the last list stays in force.

    Args:
        devices: The list.
        on_change: Called with all devices in debug mode whenever they change.
    """

    def __init__(self, devices: DebuggedDevices, on_change: Callable[[frozenset[str]], None]) -> None:
        self._devices = devices
        self._on_change = on_change
        self._known: frozenset[str] = frozenset()

    async def run(self) -> None:
        """Watch until cancelled; then report an empty list."""
        backoff = Backoff(limit=LOOK_SECONDS)
        try:
            await keep_running("debugged devices", lambda: self._watch(backoff), backoff)
        finally:
            self._take(frozenset())

    async def look(self) -> None:
        """Look once.

        Raises:
            Unavailable: Redis did not answer.
        """
        self._take(await self._devices.read())

    def _take(self, devices: frozenset[str]) -> None:
        if devices != self._known:
            self._known = devices
            self._on_change(devices)

    async def _watch(self, backoff: Backoff) -> None:
        while True:
            await self.look()
            backoff.reset()
            await asyncio.sleep(LOOK_SECONDS)


def _now() -> float:
    return datetime.now(UTC).timestamp()
