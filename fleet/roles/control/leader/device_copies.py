"""Keeps the registry's copy of what Redis knows of devices.

Events name the devices that changed (`refresh`). The rest finds what no event told: bootstraps by their time, presence
by comparing the sets of connected devices as soon as their sizes differ, everything else by a slow walk over all
devices. After a restart only what the registry lacks is copied at once: devices without a row, and bootstraps after the
last one that it knows. Nothing here holds more than a page of devices.
"""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.facts import FactReader, Refusals, pages_of
from fleet.adapters.redis.devices.tenants import DeviceTenants
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.device_copies import DeviceCopyRows
from fleet.adapters.sql.presence_rows import PresenceRows
from fleet.adapters.sql.registry_walk import RegistryWalk
from fleet.core.device_facts import DOCTOR, DeviceFacts
from fleet.ground.tasks import Backoff, keep_running

log = logging.getLogger(__name__)

_MOST_LISTS = 10_000
"""Tool lists whose numbers are remembered."""


@dataclass(frozen=True, slots=True)
class CopyPace:
    """How often what no event told is looked for; times in seconds."""

    look: float = 5.0
    """From one look for bootstraps and at the number of connected devices to the next."""
    presence: float = 120.0
    """Longest time between two comparisons of the connected devices."""
    each: float = 0.002
    """Pause of the slow walk for each device: a million devices take half an hour."""
    share: float = 0.5
    """Largest part of the time that a walk works: requests are answered in between."""
    calm_share: float = 0.1
    """The same where nothing shows that there is anything to find."""
    tidy: float = 3600.0
    presence_days: float = 30.0
    """Life of the history of presence."""


class DeviceCopies:
    """Copies devices from Redis into the registry.

    Args:
        store: Knows the devices.
        database: The registry.
        pace: Of `run`.
    """

    def __init__(self, store: Store, database: Database, pace: CopyPace | None = None) -> None:
        self._facts, self._tenants = FactReader(store), DeviceTenants(store)
        self._shards = range(store.keys.shards)
        self._rows, self._walk, self._presence = (
            DeviceCopyRows(database),
            RegistryWalk(database),
            PresenceRows(database),
        )
        self._pace = pace or CopyPace()
        self._lists: OrderedDict[str, int] = OrderedDict()

    async def refresh(self, macs: Iterable[str]) -> int:
        """Copy some devices, named by canonical MACs; return how many rows became different.

        The devices of `fleet doctor` get no row: they are gone as soon as it ends.

        The copy is what Redis has during the call, however old the news is that caused it; so a repeated or late call
        does no harm. A kill in between leaves whole pages copied, and the walk copies the rest.

        Raises:
            Unavailable: Redis or the database does not answer.
        """
        changed, refusals = 0, await self._facts.refusals()
        for page in pages_of(mac for mac in macs if not mac.startswith(DOCTOR)):
            changed += await self._copy(page, refusals)
        return changed

    async def run(self) -> None:
        """Copy what the registry lacks, then what changes, until cancelled. Only one process does this at a time."""
        async with asyncio.TaskGroup() as group:
            for work in (self._follow, self._walk_slowly, self._tidy):
                group.create_task(keep_running("copies of devices", work, Backoff()), name=work.__name__)

    async def copy_all(self, pause: float = 0.0) -> int:
        """Copy every device that Redis or the registry knows; return how many rows became different.

        Args:
            pause: Seconds for each device.

        Raises:
            Unavailable: Redis or the database does not answer.
        """
        changed = await self._copy_missing(pause)
        async for page in self._walk.all():
            async with self._paced(pause * len(page)):
                changed += await self.refresh(page)
        return changed

    async def compare_presence(self, share: float | None = None) -> int:
        """Copy the devices that are connected in Redis or in the registry, but not in both; return how many.

        Args:
            share: Largest part of the time that this works; None for that of all walks.
        """
        found = 0
        async for page in self._facts.online():
            for part in pages_of(page):
                async with self._paced(share=share):
                    found += await self.refresh(await self._walk.not_online(part))
        async for page in self._walk.online():
            async with self._paced(share=share):
                found += await self.refresh(await self._facts.disconnected(page))
        return found

    async def _copy_missing(self, pause: float = 0.0) -> int:
        changed = 0
        async for page in self._facts.all():
            for part in pages_of(page):
                async with self._paced(pause * len(part)):
                    changed += await self.refresh(await self._walk.without_row(part))
        return changed

    @asynccontextmanager
    async def _paced(self, pause: float = 0.0, share: float | None = None) -> AsyncIterator[None]:
        """Wait after the block: some seconds, and longer where the block took more than its share of the time."""
        clock = asyncio.get_running_loop().time
        begun = clock()
        yield
        await asyncio.sleep(max(pause, (clock() - begun) * (1 / (share or self._pace.share) - 1)))

    async def _copy(self, macs: Sequence[str], refusals: Refusals) -> int:
        facts = await self._facts.read(macs, refusals)
        copied = await self._rows.write(facts, await self._tool_lists(facts))
        await self._tenants.put(copied.tenants)
        if copied.new:
            # Who forgets a device deletes it in Redis first. What was read before that may be written after it: then
            # Redis does not know the device now, and the row goes again.
            again = await self._facts.read(copied.new, refusals)
            if gone := [one.mac for one in again if not one.known]:
                await self._rows.drop_new(gone)
        return copied.changed

    async def _tool_lists(self, facts: Sequence[DeviceFacts]) -> dict[str, int]:
        numbers: dict[str, int] = {}
        for one in facts:
            if not one.has_tools or one.tool_key in numbers:
                continue
            number = self._lists.get(one.pages) if one.pages else None
            if number is None:
                tools = await self._facts.tools(one.mac)
                number = await self._rows.tool_list(tools, hashlib.sha256("\n".join(tools).encode()).hexdigest())
                if one.pages:
                    self._remember(one.pages, number)
            numbers[one.tool_key] = number
        return numbers

    def _remember(self, pages: str, number: int) -> None:
        self._lists[pages] = number
        if len(self._lists) > _MOST_LISTS:
            self._lists.popitem(last=False)

    async def _follow(self) -> None:
        """Copy the devices that bootstrap answered, and compare the connected ones when their numbers differ."""
        clock = asyncio.get_running_loop().time
        since = _now() - self._pace.look
        known = await self._walk.newest_boot()
        marks = dict.fromkeys(self._shards, min(since, known - self._pace.look) if known else since)
        compared = float("-inf")
        while True:
            begun = _now() - 1
            await self.refresh(mac for mac, (at, _) in (await self._facts.refusals()).items() if at >= since)
            since = begun
            for shard in self._shards:
                marks[shard] = await self._follow_boots(shard, marks[shard])
            different = await self._facts.online_count() != await self._walk.online_count()
            if different or clock() - compared > self._pace.presence:
                await self.compare_presence(None if different else self._pace.calm_share)
                compared = clock()
            await asyncio.sleep(self._pace.look)

    async def _follow_boots(self, shard: int, since: float) -> float:
        begun = _now()
        while True:
            macs, following = await self._facts.booted_since(shard, since)
            for page in pages_of(macs):
                async with self._paced():
                    await self.refresh(page)
            if following <= since:
                # Times are whole seconds: more may come in the one that begun with this look.
                return min(since, begun - 2)
            since = following

    async def _walk_slowly(self) -> None:
        changed = await self._copy_missing()
        log.info("devices without a row are copied", extra={"changed": changed})
        while True:
            await asyncio.sleep(self._pace.look)
            await self.copy_all(self._pace.each)

    async def _tidy(self) -> None:
        while True:
            while await self._rows.drop_strangers():
                pass
            before = round((_now() - self._pace.presence_days * 86_400) * 1000)
            while await self._presence.drop(before):
                pass
            await asyncio.sleep(self._pace.tidy)


def _now() -> float:
    return datetime.now(UTC).timestamp()
