"""Collects the events that the shards keep: stores them with ids, and then removes them from Redis.

Everything that follows from a batch is one transaction of SQL, together with the places up to which the shards were
read (`fleet.adapters.sql.event_rows`). A process that is killed before it leaves all of the batch in Redis, one that is
killed after it leaves entries there that the next one skips.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from fleet.adapters.redis.shards.events import BEGUN, Outbox, OutboxEntry
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.event_rows import EventRows, Gap, NewEvent, Position, StoredEvent
from fleet.ground.metrics import events as counted

log = logging.getLogger(__name__)

MOST_EVENTS = 2_000
"""Events of one transaction: with SQLite, other writers wait for it."""
BATCH_SECONDS = 0.1
"""From one batch to the next, unless more events wait than a batch takes."""
WANTED_AGAIN_SECONDS = 600.0
_READ_SECONDS = 0.5
_MAC = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}")

Refresh = Callable[[Iterable[str]], Awaitable[int]]
Offer = Callable[[Sequence[StoredEvent]], None]


class EventCollector:
    """Collects events under one lease.

    Args:
        outbox: The streams of the shards.
        database: Where events are stored.
        refresh: Copies devices into the registry; called before the events that tell of a change are stored.
        offer: Takes what was stored.
        shards: Numbers of the shards.
    """

    def __init__(
        self, outbox: Outbox, database: Database, refresh: Refresh, offer: Offer, shards: Iterable[int]
    ) -> None:
        self._outbox, self._database = outbox, database
        self._refresh, self._offer = refresh, offer
        self._shards = tuple(shards)
        self._positions: dict[int, Position] = {}
        self._rows: EventRows | None = None
        self._gaps: list[Gap] = []

    async def run(self, fence: int) -> None:
        """Collect until cancelled.

        Raises:
            Fenced: There is a newer lease.
            Unavailable: Redis or the database does not answer; call it again.
        """
        await self.begin(fence)
        clock = asyncio.get_running_loop().time
        wanted = clock()
        while True:
            begun = clock()
            if begun - wanted > WANTED_AGAIN_SECONDS:
                await self._want()
                wanted = begun
            full = await self.step(_READ_SECONDS)
            if not full:
                await asyncio.sleep(max(0.0, begun + BATCH_SECONDS - clock()))

    async def begin(self, fence: int) -> None:
        """Take over from an earlier lease, and let the shards keep events."""
        self._rows = EventRows(self._database, fence)
        self._gaps = []
        # Shards of an earlier FLEET_SHARDS are among them, until their streams expire.
        self._positions = dict.fromkeys(self._shards, Position()) | await self._rows.begin()
        await self._want()

    async def step(self, seconds: float = 0.0) -> bool:
        """Collect one batch; return whether more may wait.

        Args:
            seconds: Longest wait for the first event.
        """
        assert self._rows is not None  # noqa: S101 - `begin` was called
        each = max(1, MOST_EVENTS // len(self._positions))
        after = {shard: one.last for shard, one in self._positions.items()}
        entries = await self._outbox.read(after, each, seconds)
        if entries or self._gaps:
            await self._store(self._rows, entries)
        return len(entries) >= each

    async def _store(self, rows: EventRows, entries: Sequence[OutboxEntry]) -> None:
        events, changed = [], set[str]()
        gaps = list(self._gaps)
        positions: dict[int, Position] = {gap.shard: self._positions[gap.shard] for gap in gaps}
        for entry in entries:
            known = positions.get(entry.shard) or self._positions[entry.shard]
            if entry.kind == BEGUN:
                if known.entries:
                    gaps.append(Gap(entry.shard, None))
                known = Position()
            else:
                event = _event(entry)
                events.append(event)
                if event.mac and event.kind.startswith("device."):
                    changed.add(event.mac)
            positions[entry.shard] = replace(known, last=entry.id, entries=known.entries + 1)
        if changed:
            await self._refresh(changed)
        now = _milliseconds()
        stored = await rows.store(events, positions, gaps, now)
        self._gaps = []
        self._positions |= positions
        self._offer(stored)
        counted.stored.add(count=len(stored))
        counted.lost.add(count=sum(gap.count or 0 for gap in gaps))
        if events:
            counted.lag.observe(max(0, now - min(one.at for one in events)) / 1000)
        await self._trim(positions)

    async def _trim(self, positions: Mapping[int, Position]) -> None:
        """Remove what was stored, and notice what the bound of a stream dropped before it was read."""
        for shard, counts in (await self._outbox.trim({shard: one.last for shard, one in positions.items()})).items():
            known = self._positions[shard]
            missing = counts.added - counts.waiting - known.entries - known.dropped
            if missing > 0:
                log.warning("events were lost", extra={"shard": shard, "count": missing})
                self._gaps.append(Gap(shard, missing))
                self._positions[shard] = replace(known, dropped=known.dropped + missing)

    async def _want(self) -> None:
        await self._outbox.want({shard: self._positions[shard].last for shard in self._shards})


def _event(entry: OutboxEntry) -> NewEvent:
    mac = entry.mac if _MAC.fullmatch(entry.mac) else ""
    # PostgreSQL stores no NUL.
    return NewEvent(entry.shard, entry.id, entry.at, entry.kind[:63], mac, entry.data.replace("\0", ""))


def _milliseconds() -> int:
    return round(datetime.now(UTC).timestamp() * 1000)
