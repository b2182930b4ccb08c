"""The devices that may not connect, although their credentials are genuine."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from fleet.store.connect import Store
from fleet.tasks import Backoff, keep_running
from fleet.wire.identity import Minima

LOOK_SECONDS = 1.0
"""A revocation counts everywhere within five seconds; each watcher looks this often."""

_MACS = "{revoked}:macs"
_MINIMA = "{revoked}:minima"
_DEFAULT = "{revoked}:default"
_VERSION = "{revoked}:version"
"""Changes with the set, so that watching a long one is cheap; so may its size, should a failover lose this."""

Told = Callable[[frozenset[str], frozenset[str]], Awaitable[None]]
"""Given all revoked devices, and those that were added since the last time."""


class Revocations:
    """Reads and changes the list."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, mac: str) -> bool:
        """Revoke a canonical MAC; return whether it was not before."""
        return await self._change("sadd", mac)

    async def remove(self, mac: str) -> bool:
        """Let a device in again; return whether it was revoked."""
        return await self._change("srem", mac)

    async def read(self) -> frozenset[str]:
        members = cast("Awaitable[set[str]]", self._store.client.smembers(_MACS))
        return frozenset(await self._store.ask(members))

    async def require(self, mac: str, generation: int) -> bool:
        """Refuse credentials of a canonical MAC below a generation; return whether that refuses more than before."""
        minima = await self.minima()
        if generation <= minima.of(mac):
            return False
        await self._store.ask(self._store.client.hset(_MINIMA, mac, str(generation)))
        return True

    async def require_all(self, generation: int) -> bool:
        """Refuse credentials below a generation, 0 or 1, of every MAC without a minimum of its own."""
        minima = await self.minima()
        await self._store.ask(self._store.client.set(_DEFAULT, generation))
        for mac in [mac for mac, least in minima.macs.items() if least <= generation]:
            await self._store.ask(self._store.client.hdel(_MINIMA, mac))
        return minima.default != generation

    async def minima(self) -> Minima:
        """Return the lowest generations that count, of all devices."""
        pipe = self._store.client.pipeline(transaction=False)
        pipe.get(_DEFAULT)
        pipe.hgetall(_MINIMA)
        default, macs = await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))
        return Minima(int(default or 0), {mac: int(generation) for mac, generation in macs.items()})

    async def state(self) -> tuple[str, int]:
        """Return what differs when the list does."""
        pipe = self._store.client.pipeline(transaction=False)
        pipe.get(_VERSION)
        pipe.scard(_MACS)
        version, size = await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))
        return version or "", int(size)

    async def _change(self, how: str, mac: str) -> bool:
        pipe = self._store.client.pipeline(transaction=False)
        getattr(pipe, how)(_MACS, mac)
        pipe.incr(_VERSION)
        changed, _ = await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))
        return changed == 1


class RevocationWatch:
    """Tells about every change of the list, the first time at its start; without Redis what was told last counts on.

    Args:
        revocations: The list.
        told: Called with each change, and again with the same one when it failed.
    """

    def __init__(self, revocations: Revocations, told: Told) -> None:
        self._revocations = revocations
        self._told = told
        self._known: frozenset[str] = frozenset()
        self._state: tuple[str, int] | None = None
        self._backoff = Backoff(limit=LOOK_SECONDS)

    async def run(self) -> None:
        """Watch until cancelled."""
        await keep_running("revocations", self._watch, self._backoff)

    async def look(self) -> None:
        """Look once.

        Raises:
            Unavailable: Redis did not answer.
        """
        state = await self._revocations.state()
        if state == self._state:
            return
        macs = await self._revocations.read()
        await self._told(macs, macs - self._known)
        self._known, self._state = macs, state

    async def _watch(self) -> None:
        while True:
            await self.look()
            self._backoff.reset()
            await asyncio.sleep(LOOK_SECONDS)
