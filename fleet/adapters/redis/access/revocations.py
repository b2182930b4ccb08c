"""Genuine credentials that are refused: of revoked devices, and of generations below a minimum.

The list is in Redis and may have a million entries. Every change has a number (`version`) and an entry in a log of
bounded length, so that a watcher reads the changes that it missed. A watcher reads the whole list, in pages, at its
start and when the log does not reach back far enough.
"""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import Overloaded
from fleet.wire.identity import LARGEST_GENERATION, Minima

MOST = 1_000_000
"""Revoked devices; and as many MACs with a minimum of their own. The Mosquitto plugin reads no more."""

_MACS = "{revoked}:macs"
_MINIMA = "{revoked}:minima"
_DEFAULT = "{revoked}:default"
_VERSION = "{revoked}:version"
_LOG = "{revoked}:log"
_LONGEST_LOG = 10_000
"""Changes; one is about 100 bytes."""
_PAGE = 5_000
_THINNED_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class State:
    """The version of the list: the number of the last change, and its log entry's id."""

    version: int
    logged: str


@dataclass(frozen=True, slots=True)
class RevocationStep:
    """One change in the log: `what` is revoke, unrevoke, require or require_all."""

    at: State
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
        """Refuse credentials below a generation, 0 or 1, of every MAC without a minimum of its own.

        Returns whether that is new. At 1 the MACs whose own minimum is 1 lose it, so that the list stays small; a later
        0 does not restore it.

        Raises:
            ValueError: The generation is neither 0 nor 1.
        """
        if generation not in (0, 1):
            raise ValueError(f"no minimum of all devices: {generation}")
        changed = await self._change("require_all", "", generation)
        if generation:
            await self._thin()
        return changed

    async def read(self) -> frozenset[str]:
        """Return all revoked devices."""
        found, cursor = set[str](), 0
        while True:
            scan = cast("Awaitable[Any]", self._store.client.sscan(_MACS, cursor, count=_PAGE))
            cursor, page = await self._store.ask(scan)
            found.update(page)
            if not int(cursor):
                return frozenset(found)

    async def holds(self, mac: str) -> bool:
        """Whether one device is revoked."""
        return bool(await self._store.ask(cast("Awaitable[int]", self._store.client.sismember(_MACS, mac))))

    async def minima(self) -> Minima:
        """Return the lowest valid generations of all devices."""
        default = await self._store.ask(self._store.client.get(_DEFAULT))
        found, cursor = dict[str, int](), 0
        while True:
            cursor, page = await self._scan_minima(cursor)
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

    async def state(self) -> State:
        """Return the version of the list."""
        version, logged = await self._store.call("fleet_access_state", [_VERSION, _LOG], [])
        return State(int(version), logged)

    async def since(self, known: State) -> list[RevocationStep]:
        """Return the logged changes since a state, oldest first; the oldest ones may be missing."""
        entries = cast(
            "Awaitable[Any]", self._store.client.xrange(_LOG, min=f"({known.logged}" if known.logged else "-")
        )
        return [
            RevocationStep(State(int(fields["v"]), at), fields["what"], fields["mac"], int(fields["gen"]))
            for at, fields in await self._store.ask(entries)
        ]

    async def _change(self, what: str, mac: str, generation: int = 0) -> bool:
        keys = [_MACS, _MINIMA, _DEFAULT, _VERSION, _LOG]
        [changed] = await self._store.call("fleet_access", keys, [what, mac, generation, MOST, _LONGEST_LOG])
        if changed == "-1":
            raise Overloaded(f"the list of who may not connect has {MOST} entries")
        return changed == "1"

    async def _thin(self) -> None:
        """Remove minima that the minimum of all devices already implies."""
        cursor = 0
        while True:
            cursor, page = await self._scan_minima(cursor)
            macs = [mac for mac, generation in page.items() if generation <= 1]
            for at in range(0, len(macs), _THINNED_AT_ONCE):
                few = macs[at : at + _THINNED_AT_ONCE]
                await self._store.call("fleet_access_thin", [_MINIMA, _DEFAULT], few)
            if not cursor:
                return

    async def _scan_minima(self, cursor: int) -> tuple[int, Mapping[str, int]]:
        scan = cast("Awaitable[Any]", self._store.client.hscan(_MINIMA, cursor, count=_PAGE))
        following, page = await self._store.ask(scan)
        return int(following), {mac: int(generation) for mac, generation in page.items()}
