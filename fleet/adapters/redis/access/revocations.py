"""The deny list: credentials with a valid password that are refused.

A credential is refused because the device is revoked, or because its generation is too low.

The list is in Redis and may have a million entries. Every change has a number (`version`) and an entry in a log of
bounded length. A watcher reads the whole list, in pages, when it starts; then it reads the log. It reads the whole
list again when the log no longer holds the change that follows the last one it knows.
"""

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import Overloaded
from fleet.wire.identity import LARGEST_GENERATION, Minima

MOST_ENTRIES = 1_000_000
"""Bound of the revoked devices, and of the MACs with their own minimum. The Mosquitto plugin reads no more."""

_MACS = "{revoked}:macs"
_MINIMA = "{revoked}:minima"
_DEFAULT = "{revoked}:default"
_VERSION = "{revoked}:version"
_LOG = "{revoked}:log"
_LONGEST_LOG = 10_000
"""Changes; one is about 100 bytes."""
_PAGE = 5_000
_PRUNE_BATCH = 500
"""MACs in one call: while it runs, Redis serves nobody else."""


@dataclass(frozen=True, slots=True)
class ListVersion:
    """The number of a change of the list, and the id of its log entry; 0 and empty if nothing has changed yet."""

    version: int
    log_id: str


@dataclass(frozen=True, slots=True)
class RevocationStep:
    """One change in the log: `what` is revoke, unrevoke, require or require_all; `after` is the version it made."""

    after: ListVersion
    what: str
    mac: str
    generation: int


class Revocations:
    """Reads and changes the list. All methods raise Unavailable while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, mac: str) -> bool:
        """Revoke a canonical MAC; return whether that is new.

        Raises:
            Overloaded: A million devices are revoked.
        """
        return await self._change("revoke", mac)

    async def remove(self, mac: str) -> bool:
        """Lift a device's revocation; return whether it was revoked. A minimum set by `require` stays."""
        return await self._change("unrevoke", mac)

    async def require(self, mac: str, generation: int) -> bool:
        """Refuse credentials of a canonical MAC below a generation; return whether the minimum rose.

        Raises:
            ValueError: The generation is not 1 to 2**31 - 1.
            Overloaded: A million MACs have a minimum of their own.
        """
        if not 1 <= generation <= LARGEST_GENERATION:
            raise ValueError(f"no generation: {generation}")
        return await self._change("require", mac, generation)

    async def require_all(self, generation: int) -> bool:
        """Set the default minimum (0: none; 1: refuse generation 0). MACs with their own minimum keep it.

        Returns whether the default changed. At 1, own minima of 1 are removed, because the default implies them; a
        later 0 does not restore them.

        Raises:
            ValueError: The generation is neither 0 nor 1.
        """
        if generation not in (0, 1):
            raise ValueError(f"no minimum of all devices: {generation}")
        changed = await self._change("require_all", "", generation)
        if generation:
            await self._prune_implied_minima()
        return changed

    async def read(self) -> frozenset[str]:
        """Return all revoked devices."""
        return frozenset([mac async for page in self.pages() for mac in page])

    async def pages(self) -> AsyncIterator[list[str]]:
        """Yield pages of all revoked devices."""
        cursor = 0
        while True:
            scan = cast("Awaitable[Any]", self._store.client.sscan(_MACS, cursor, count=_PAGE))
            cursor, page = await self._store.ask(scan)
            yield list(page)
            if not int(cursor):
                return

    async def which(self, macs: Sequence[str]) -> frozenset[str]:
        """Return those of some devices that are revoked."""
        found = cast("Awaitable[list[int]]", self._store.client.smismember(_MACS, list(macs)))
        return frozenset(mac for mac, there in zip(macs, await self._store.ask(found), strict=True) if there)

    async def minima(self) -> Minima:
        """Return the lowest valid generations of all devices."""
        default = await self._store.ask(self._store.client.get(_DEFAULT))
        found, cursor = dict[str, int](), 0
        while True:
            cursor, page = await _scan_minima(self._store, cursor)
            found.update(page)
            if not cursor:
                return Minima(int(default or 0), found)

    async def minimum(self, mac: str) -> int:
        """Return the lowest valid generation of one device."""
        pipe = self._store.client.pipeline(transaction=False)
        pipe.hget(_MINIMA, mac)
        pipe.get(_DEFAULT)
        own, default = await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))
        return int(own or default or 0)

    async def forget(self, mac: str) -> None:
        """Remove a device from the list and its log. Its earlier passwords are valid again, unless keys were rotated.

        Watchers find that changes are missing in the log, and read the whole list.
        """
        pipe = self._store.client.pipeline(transaction=False)
        pipe.srem(_MACS, mac)
        pipe.hdel(_MINIMA, mac)
        pipe.xrange(_LOG)
        revoked, minimum, entries = await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))
        gone = [number for number, fields in entries if fields["mac"] == mac]
        if gone:
            await self._store.ask(self._store.client.xdel(_LOG, *gone))
        if revoked or minimum:
            await self._store.ask(cast("Awaitable[int]", self._store.client.execute_command("INCR", _VERSION)))

    async def version(self) -> ListVersion:
        """Return the version of the list."""
        version, log_id = await self._store.call("fleet_access_state", [_VERSION, _LOG], [])
        return ListVersion(int(version), log_id)

    async def since(self, known: ListVersion) -> list[RevocationStep]:
        """Return the logged changes after a version, oldest first.

        The log is bounded: if the first step's version is not `known.version + 1`, read the whole list.
        """
        start = f"({known.log_id}" if known.log_id else "-"
        entries = cast("Awaitable[Any]", self._store.client.xrange(_LOG, min=start))
        return [
            RevocationStep(ListVersion(int(fields["v"]), log_id), fields["what"], fields["mac"], int(fields["gen"]))
            for log_id, fields in await self._store.ask(entries)
        ]

    async def _change(self, what: str, mac: str, generation: int = 0) -> bool:
        keys = [_MACS, _MINIMA, _DEFAULT, _VERSION, _LOG]
        [changed] = await self._store.call("fleet_access", keys, [what, mac, generation, MOST_ENTRIES, _LONGEST_LOG])
        if changed == "-1":
            raise Overloaded(f"the list of who may not connect has {MOST_ENTRIES} entries")
        return changed == "1"

    async def _prune_implied_minima(self) -> None:
        """Remove own minima that the default already implies."""
        cursor = 0
        while True:
            cursor, page = await _scan_minima(self._store, cursor)
            macs = [mac for mac, generation in page.items() if generation <= 1]
            for at in range(0, len(macs), _PRUNE_BATCH):
                await self._store.call("fleet_access_thin", [_MINIMA, _DEFAULT], macs[at : at + _PRUNE_BATCH])
            if not cursor:
                return


async def _scan_minima(store: Store, cursor: int) -> tuple[int, Mapping[str, int]]:
    scan = cast("Awaitable[Any]", store.client.hscan(_MINIMA, cursor, count=_PAGE))
    following, page = await store.ask(scan)
    return int(following), {mac: int(generation) for mac, generation in page.items()}
