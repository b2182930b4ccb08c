"""The devices of a shard with an old password, and the generations to require of them."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import cast

from fleet.adapters.redis.access.admissions import YOUNG_SECONDS
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import prefix
from fleet.adapters.redis.shards.owner import Owner

MOST_DUE = 100
_PAGE = 200
_SOURCES = ("online", "seen")
"""Sets of devices that are scanned: connected ones, and those with a recent bootstrap."""


@dataclass(frozen=True, slots=True)
class RenewalPace:
    """The pace of restart requests; times in seconds.

    `replacing` is whether devices are asked at all, `most` how many at a time. `again` is the pause before a device is
    asked again; it doubles each time up to `longest`. `busy` is the pause before a device in a session is checked
    again.
    """

    replacing: bool
    most: int
    again: int = 300
    longest: int = 24 * 3600
    busy: int = 5


@dataclass(frozen=True, slots=True)
class SortProgress:
    """How far a shard's devices are sorted into old and current passwords, for a policy that began at `since`."""

    since: int
    source: int
    cursor: int

    def covers(self, since: int) -> bool:
        """Whether all devices are sorted."""
        return self.since == since and self.source == len(_SOURCES)


@dataclass(frozen=True, slots=True)
class DueRenewals:
    """The due work of a shard: generations to require of devices, and devices to ask for a restart.

    `young` is how many MACs never connected.
    """

    mark: SortProgress
    young: int
    due: list[tuple[str, int]]
    ask: list[str]


class Renewals:
    """Reads and writes renewals as the owner of a shard.

    All methods raise Unavailable while Redis does not answer. Those with an owner raise Fenced when another worker has
    the shard.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def look(self, owner: Owner, shard: int, pace: RenewalPace) -> DueRenewals:
        """Return the due work of a shard, and delete expired MACs that never connected."""
        names = self._store.keys
        keys = [
            names.own(shard),
            names.due(shard),
            names.old(shard),
            self._mark_key(shard),
            names.young(shard),
            names.seen(shard),
        ]
        limits = [MOST_DUE, int(pace.replacing), pace.most, pace.again, pace.longest, pace.busy, YOUNG_SECONDS]
        mark, young, count, *rest = await self._store.call(
            "fleet_renewal_look", keys, [*_lease(owner), prefix(shard), *limits]
        )
        macs = 2 * int(count)
        due = zip(rest[:macs:2], rest[1:macs:2], strict=True)
        return DueRenewals(_mark(mark), int(young), [(mac, int(generation)) for mac, generation in due], rest[macs:])

    async def settle(self, owner: Owner, shard: int, required: Sequence[tuple[str, int]]) -> None:
        """Record that generations are required of devices of a shard: at most `MOST_DUE` MACs."""
        if not required:
            return
        names = self._store.keys
        keys = [names.own(shard), names.due(shard), *(f"{prefix(shard)}o:{mac}" for mac, _ in required)]
        words = [word for pair in required for word in pair]
        await self._store.call("fleet_renewal_settled", keys, [*_lease(owner), *words])

    async def scan(self, owner: Owner, shard: int, since: int) -> bool:
        """Sort the next devices of a shard, once after a policy began at `since`; return whether all are sorted."""
        mark = await self._read_mark(shard)
        if mark.covers(since):
            return True
        known, source, cursor = (since, mark.source, mark.cursor) if mark.since == since else (since, 0, 0)
        names = self._store.keys
        devices = (names.online(shard), names.seen(shard))[source]
        keys = [names.own(shard), devices, names.old(shard), names.due(shard), self._mark_key(shard)]
        words: list[str | int] = [*_lease(owner), prefix(shard), cursor, _PAGE, f"{known} {source}"]
        [following] = await self._store.call("fleet_renewal_scan", keys, words)
        if following == "0":
            await self._write_mark(shard, f"{known} {source + 1} 0")
        return False

    async def left(self, since: int) -> int | None:
        """Return how many devices of all shards have an old password; None while not all are sorted."""
        total = 0
        for shard in range(self._store.keys.shards):
            if not (await self._read_mark(shard)).covers(since):
                return None
            counted = self._store.client.zcard(self._store.keys.old(shard))
            total += await self._store.ask(counted)
        return total

    async def ask_now(self, macs: list[str]) -> None:
        """Make these devices due for a restart request now, regardless of earlier requests."""
        for mac in macs:
            names = self._store.keys
            pipe = self._store.client.pipeline(transaction=False)
            pipe.hdel(names.device(mac), "rn")
            pipe.zadd(names.old(names.shard(mac)), {mac: 0})
            await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))

    async def _read_mark(self, shard: int) -> SortProgress:
        found = self._store.client.get(self._mark_key(shard))
        text = await self._store.ask(cast("Awaitable[str | None]", found))
        return _mark(text or "")

    async def _write_mark(self, shard: int, text: str) -> None:
        written = self._store.client.set(self._mark_key(shard), text)
        await self._store.ask(written)

    def _mark_key(self, shard: int) -> str:
        return f"{prefix(shard)}sorted"


def _mark(text: str) -> SortProgress:
    since, source, cursor = (text or "0 0 0").split()
    return SortProgress(int(since), int(source), int(cursor))


def _lease(owner: Owner) -> tuple[str, str]:
    return owner.worker, owner.fence
