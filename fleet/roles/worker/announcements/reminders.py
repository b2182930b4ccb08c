"""Tells devices what their users wanted to be reminded of, when it is due."""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, tzinfo
from functools import partial
from typing import Final

from fleet.adapters.redis.announcements.reminders import CLAIM_SECONDS, ClaimedReminder, Reminders, Waiting
from fleet.core import reminders as core
from fleet.core.text.phrases import choose_language
from fleet.ground.errors import Fenced, FleetError
from fleet.ground.local_time import own_zone
from fleet.ground.log import fields
from fleet.ground.metrics import reminders as counted
from fleet.ground.tasks import Backoff, keep_running
from fleet.roles.worker.announcements.delivery import AnnouncementDelivery
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.resources import WorkerResources
from fleet.wire.announcements import DeviceAnnouncement
from fleet.wire.operator_calls import OFFLINE
from fleet.wire.reminders import Reminder

log = logging.getLogger(__name__)

AT_ONCE: Final = 128
"""Deliveries of one worker at a time; most of one is waiting. Others wait in Redis. A tenant has one more only while it
has fewer than are free: at most half of them, and another tenant finds places at once."""
LOOK_SECONDS: Final = 5.0
"""Longest time until a shard is looked at: devices that come back are told what waits for them."""
AGAIN: Final = timedelta(minutes=10)
"""How often a device that cannot be told is tried, beside the moments at which it connects or begins a session."""
_STEP: Final = 0.25


class ReminderRunner:
    """Delivers the due reminders of the owned shards, as announcements are delivered.

    A reminder is claimed before it is told. The shard's next owner goes on with the same delivery, which takes no way
    twice (`AnnouncementDelivery`).

    Args:
        resources: Of the worker.
        delivery: Of announcements.
        owned: Returns the shards that this worker owns now.
    """

    def __init__(
        self, resources: WorkerResources, delivery: AnnouncementDelivery, owned: Callable[[], Mapping[int, Shard]]
    ) -> None:
        self._reminders: Reminders = resources.reminders
        self._settings = settings = resources.settings
        self._language = choose_language(settings.language, settings.languages, "")
        self._delivery, self._owned = delivery, owned
        self._looks: dict[int, tuple[str, float]] = {}
        """By shard: the fence of its last look, and when the next one is due, by the clock of the loop."""
        self._running = Counter[int]()
        """Deliveries by tenant."""

    async def run(self) -> None:
        """Look until cancelled."""
        backoff = Backoff(limit=5.0)
        await keep_running("reminders", lambda: self._repeat(backoff), backoff)

    async def _repeat(self, backoff: Backoff) -> None:
        while True:
            shards = list(self._owned().values())
            # No shard with many reminders may always be the first.
            for shard in random.sample(shards, len(shards)):
                if self._running.total() < AT_ONCE and shard.connected and shard.held and self._is_due(shard):
                    await self._look(shard)
            backoff.reset()
            await asyncio.sleep(_STEP)

    def _is_due(self, shard: Shard) -> bool:
        fence, at = self._looks.get(shard.number, ("", 0.0))
        now = asyncio.get_running_loop().time()
        return now >= at or fence != shard.owner.fence or shard.number in self._reminders.added

    async def _look(self, shard: Shard) -> None:
        fence, _ = self._looks.get(shard.number, ("", 0.0))
        first = fence != shard.owner.fence
        try:
            free, held = AT_ONCE - self._running.total(), +self._running
            found = await self._reminders.claim(shard.owner, shard.number, free, held, first=first)
            after = LOOK_SECONDS if found.after is None else min(found.after, LOOK_SECONDS)
            self._looks[shard.number] = (shard.owner.fence, asyncio.get_running_loop().time() + after)
            for claimed in found.claimed:
                task = shard.spawn(f"reminder {claimed.mac}", self._deliver(shard, claimed, found.now))
                self._running[claimed.tenant] += 1
                task.add_done_callback(partial(self._end, claimed.tenant))
        except Fenced:
            return
        except FleetError as error:
            log.warning("reminders not claimed", extra={"shard": shard.number, "reason": str(error)})

    def _end(self, tenant: int, _: asyncio.Task[object]) -> None:
        self._running[tenant] -= 1

    async def _deliver(self, shard: Shard, claimed: ClaimedReminder, now: datetime) -> None:
        with fields(device=claimed.mac):
            try:
                async with asyncio.timeout(CLAIM_SECONDS - 60):
                    await self._persist(shard, claimed, now)
            except TimeoutError:
                log.warning("reminder will be looked at again", extra={"reminder": claimed.reminder.id})

    async def _persist(self, shard: Shard, claimed: ClaimedReminder, now: datetime) -> None:
        """Tell a device; try again while Redis is away."""
        pauses = Backoff(limit=5.0)
        while True:
            try:
                return await self._announce(shard, claimed, now)
            except Fenced:
                raise
            except FleetError as error:
                log.warning("reminder will be tried again", extra={"reason": str(error)})
            await pauses.pause()

    async def _announce(self, shard: Shard, claimed: ClaimedReminder, now: datetime) -> None:
        begun, mac = claimed.begun, claimed.mac
        zone = own_zone(claimed.timezone, self._settings.timezone)
        if claimed.reminder.due > core.ms_of(now):
            # A device woke up for a daily one that was told already, or its time zone was changed.
            await self._reminders.end(shard.owner, claimed, core.moved(claimed.reminder, now, zone))
            return None
        reminder = core.newest(claimed.reminder, begun, zone)
        if core.is_over(reminder, begun):
            return await self._finish(shard, claimed, reminder, "expired", zone)
        if claimed.claims > core.MOST_CLAIMS or now - begun > core.LONGEST_DELIVERY:
            return await self._finish(shard, claimed, reminder, "lost", zone)
        text = core.announced(reminder, begun, zone, self._language)
        announcement = DeviceAnnouncement(text, reminder.language, reminder=True, tenant=claimed.tenant)
        call = f"reminder {reminder.id} {core.ms_of(begun)}"
        wanted = partial(self._reminders.has, mac, reminder.id)
        outcome = await self._delivery.deliver(shard, mac, call, announcement, wanted)
        if outcome.status == "ok":
            return await self._finish(shard, claimed, reminder, outcome.text.partition(":")[0], zone)
        waiting: Waiting = "offline" if outcome.text == OFFLINE else "session"
        look = min(now + AGAIN, core.time_of(reminder) + core.KEPT + timedelta(seconds=1))
        if await self._reminders.wait(shard.owner, claimed, reminder, look, waiting):
            log.info("reminder waits", extra={"reminder": reminder.id, "for": waiting})
        return None

    async def _finish(self, shard: Shard, claimed: ClaimedReminder, reminder: Reminder, end: str, zone: tzinfo) -> None:
        """End a delivery; a daily reminder comes again."""
        following = core.follow(reminder, claimed.begun, zone)
        if await self._reminders.end(shard.owner, claimed, following):
            late = core.is_late(reminder, claimed.begun)
            counted.ended.add(end, "yes" if late else "no")
            log.info("reminder ended", extra={"reminder": reminder.id, "end": end, "late": late})
