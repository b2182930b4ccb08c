"""The reminders of devices, and the set of each shard by which its owner finds those that are due."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, cast

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import TURN_SECONDS, prefix
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.reminders import MOST
from fleet.wire.reminders import REMINDERS, Reminder

MOST_OF_SITE: Final = 262_144
"""Reminders of all devices together; each shard has its part. A tenant has one more only while it has fewer than are
free, so at most half of a part. One takes about 400 bytes."""
SHARE: Final = 3
"""Most reminders of a device while its tenant has half of what it may have: few devices cannot take the places of all
others of their tenant."""
LOOKED_AT: Final = 256
"""Due reminders that one look takes in: of tenants with many, most only go behind those of others."""
CLAIM_SECONDS: Final = 900.0
"""How long a claim counts while its owner has the shard: longer than any delivery lasts."""

_NOBODY: Final[Mapping[int, int]] = {}

Waiting = Literal["", "offline", "session"]
"""What a device that could not be told waits for, beside the time."""


@dataclass(frozen=True, slots=True)
class ClaimedReminder:
    """A reminder that this worker delivers now, or goes on to deliver."""

    mac: str
    reminder: Reminder
    timezone: str
    """Of the device; empty for the server's."""
    begun: datetime
    """When the delivery began, by the clock of Redis; an earlier owner may have begun it."""
    claims: int
    """How often it was claimed since, this time included."""
    tenant: int
    """Whose device it is; 0 for the tenant of the site."""


@dataclass(frozen=True, slots=True)
class DueReminders:
    """What a look at a shard found."""

    now: datetime
    """By the clock of Redis."""
    claimed: list[ClaimedReminder]
    after: float | None
    """Seconds until the next one is due, None if there is none."""


class Reminders:
    """Reads and writes reminders. All methods raise `Unavailable` while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.added: set[int] = set()
        """Shards that got a reminder since their owner looked."""

    async def add(self, owner: Owner, mac: str, reminder: Reminder) -> Reminder | Literal["device", "site"]:
        """Keep a reminder, once for its id; return it as it was kept, or where there is no place.

        Raises:
            Fenced: The shard is another worker's now.
        """
        keys, shard = self._store.keys, self._store.keys.shard(mac)
        most = most_of_shard(keys.shards)
        verdict, kept = await self._store.call(
            "fleet_reminder_set",
            [
                *(keys.own(shard), keys.reminders(mac), keys.reminders_due(shard)),
                keys.idempotency(mac, f"reminder:{reminder.id}"),
            ],
            [
                *(owner.worker, owner.fence, mac, reminder.id, reminder.write(), reminder.due),
                *(TURN_SECONDS * 1000, MOST, most, SHARE),
            ],
        )
        if verdict == "DEVICE":
            return "device"
        if verdict == "SITE":
            return "site"
        self.added.add(shard)
        return REMINDERS.decode(kept) if kept else reminder

    async def read(self, mac: str) -> list[Reminder]:
        """Return a device's reminders, the next one first."""
        asked = self._store.client.hvals(self._store.keys.reminders(mac))
        found = [REMINDERS.decode(text) for text in await self._store.ask(cast("Awaitable[list[str]]", asked))]
        return sorted(found, key=lambda one: (one.due, one.id))

    async def has(self, mac: str, reminder: str) -> bool:
        """Return whether a device has a reminder."""
        return await self._store.ask(self._store.client.hexists(self._store.keys.reminders(mac), reminder))

    async def look_again(self, mac: str) -> None:
        """Let the owner look at all reminders of a device within seconds: its time zone was changed."""
        keys = self._store.keys
        ids = await self._store.ask(cast("Awaitable[list[str]]", self._store.client.hkeys(keys.reminders(mac))))
        if ids:
            at_once = {f"{mac}|{one}": 0 for one in ids}
            asked = self._store.client.zadd(keys.reminders_due(keys.shard(mac)), at_once, xx=True)
            await self._store.ask(cast("Awaitable[int]", asked))

    async def cancel(self, mac: str, ids: Sequence[str]) -> int:
        """Delete some reminders of a device; return how many there were."""
        return await self._cancel(mac, ids) if ids else 0

    async def clear(self, mac: str) -> int:
        """Delete all reminders of a device; return how many there were."""
        return await self._cancel(mac, ())

    async def claim(
        self, owner: Owner, shard: int, free: int, held: Mapping[int, int] = _NOBODY, *, first: bool
    ) -> DueReminders:
        """Claim reminders of a shard that are due. A tenant gets one more place only while it has fewer than are free.

        Args:
            owner: Of the shard.
            shard: The shard.
            free: Places for deliveries.
            held: Places that tenants have.
            first: Whether this owner looks for the first time: then also those that an earlier owner has begun.

        Raises:
            Fenced: The shard is another worker's now.
        """
        keys = self._store.keys
        self.added.discard(shard)
        at, following, *parts = await self._store.call(
            "fleet_reminders_claim",
            [keys.own(shard), keys.reminders_due(shard), keys.reminders_begun(shard)],
            [
                *(owner.worker, owner.fence, prefix(shard), free, round(CLAIM_SECONDS * 1000), int(first), LOOKED_AT),
                *(word for pair in held.items() for word in pair),
            ],
        )
        claimed = [
            ClaimedReminder(mac, REMINDERS.decode(text), timezone, _time(begun), int(claims), int(tenant))
            for mac, text, timezone, begun, claims, tenant in zip(*(iter(parts),) * 6, strict=True)
        ]
        after = max(0.0, (float(following) - int(at)) / 1000) if following else None
        return DueReminders(_time(at), claimed, after)

    async def end(self, owner: Owner, claimed: ClaimedReminder, following: Reminder | None = None) -> bool:
        """End a delivery: the reminder is over, or it comes again as `following`; return False if that was known.

        Raises:
            Fenced: The shard is another worker's now.
        """
        look, text = (following.due, following.write()) if following else ("", "")
        return await self._end(owner, claimed, look, text, "")

    async def wait(
        self, owner: Owner, claimed: ClaimedReminder, kept: Reminder, look: datetime, waiting: Waiting
    ) -> bool:
        """Keep a reminder of a device that could not be told; look again at this time, or when the device is there.

        Raises:
            Fenced: The shard is another worker's now.
        """
        return await self._end(owner, claimed, round(look.timestamp() * 1000), kept.write(), waiting)

    async def _cancel(self, mac: str, ids: Sequence[str]) -> int:
        keys, shard = self._store.keys, self._store.keys.shard(mac)
        names = [keys.reminders(mac), keys.reminders_due(shard), keys.reminders_begun(shard)]
        (count,) = await self._store.call("fleet_reminders_cancel", names, [mac, *ids])
        return int(count)

    async def _end(
        self, owner: Owner, claimed: ClaimedReminder, look: int | str, text: bytes | str, waiting: Waiting
    ) -> bool:
        keys, mac = self._store.keys, claimed.mac
        shard, begun = keys.shard(mac), round(claimed.begun.timestamp() * 1000)
        (done,) = await self._store.call(
            "fleet_reminder_end",
            [
                *(keys.own(shard), keys.reminders(mac), keys.reminders_due(shard), keys.reminders_begun(shard)),
                keys.device(mac),
            ],
            [owner.worker, owner.fence, mac, claimed.reminder.id, begun, look, text, waiting],
        )
        return done == "1"


def most_of_shard(shards: int) -> int:
    """Return how many reminders of one shard's devices are kept."""
    return max(MOST, MOST_OF_SITE // shards)


def _time(ms: str) -> datetime:
    return datetime.fromtimestamp(int(ms) / 1000, UTC)
