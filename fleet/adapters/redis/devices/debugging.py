"""The devices that an operator looks at closely: every process writes all their log lines for a while."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, cast

from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import ConfigError
from fleet.ground.tasks import Backoff, keep_running

LOOK_SECONDS = 1.0
MOST = 50
"""Devices at a time: their lines cost what they cost."""
LONGEST_MINUTES = 24 * 60

_MACS = "debugged"
"""Sorted set by the second in which it ends."""


class DebuggedDevices:
    """Reads and changes the list."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def set(self, mac: str, seconds: float) -> None:
        """Look at a canonical MAC for so long from now, instead of for any other time; 0 ends it.

        Raises:
            ConfigError: Enough others are looked at.
            Unavailable: Redis did not answer.
        """
        if seconds > 0 and len(await self.read() - {mac}) >= MOST:
            raise ConfigError(f"{MOST} devices are looked at already; end one with --minutes 0")
        now = _now()
        pipe = self._store.client.pipeline(transaction=False)
        pipe.zremrangebyscore(_MACS, "-inf", now)
        pipe.zadd(_MACS, {mac: now + seconds})
        pipe.expire(_MACS, LONGEST_MINUTES * 60)
        await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))

    async def read(self) -> frozenset[str]:
        """Return the devices that are looked at now.

        Raises:
            Unavailable: Redis did not answer.
        """
        found = self._store.client.zrangebyscore(_MACS, f"({_now()}", "+inf", start=0, num=MOST)
        return frozenset(await self._store.ask(cast("Awaitable[list[str]]", found)))


class DebugWatch:
    """Tells about every change of the list; without Redis what was told last goes on.

    Args:
        devices: The list.
        told: Given all devices of it, whenever they change.
    """

    def __init__(self, devices: DebuggedDevices, told: Callable[[frozenset[str]], None]) -> None:
        self._devices = devices
        self._told = told
        self._known: frozenset[str] = frozenset()

    async def run(self) -> None:
        """Watch until cancelled; then nothing is looked at."""
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
            self._told(devices)

    async def _watch(self, backoff: Backoff) -> None:
        while True:
            await self.look()
            backoff.reset()
            await asyncio.sleep(LOOK_SECONDS)


def _now() -> float:
    return datetime.now(UTC).timestamp()
