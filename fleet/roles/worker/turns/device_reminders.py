"""The reminders of one device during a turn, for the tools that set, list and cancel them."""

import hashlib
import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Literal, TypeVar

from fleet.adapters.redis.announcements.reminders import Reminders
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.reminders import Moment, ms_of
from fleet.ground.errors import Fenced, Unavailable
from fleet.ground.metrics import reminders as counted
from fleet.wire.reminders import Reminder

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TurnReminders:
    """See `fleet.core.reminders.DeviceReminders`."""

    reminders: Reminders
    owner: Owner
    """Of the device's shard."""
    mac: str
    turn: str
    """A call that is repeated in a turn sets no second reminder."""
    zone: tzinfo
    language: str
    """Of the user."""

    async def add(self, text: str, moment: Moment, due: datetime) -> Reminder | Literal["device", "site"] | None:
        """Keep a reminder."""
        name = hashlib.sha256(f"{self.turn} {text} {moment}".encode()).hexdigest()[:8]
        clock = f"{moment.clock:%H:%M}" if moment.clock and moment.daily else ""
        wanted = Reminder(id=name, text=text, due=ms_of(due), language=self.language, clock=clock)
        kept = await self._ask(self.reminders.add(self.owner, self.mac, wanted))
        counted.requests.add("failed" if kept is None else f"no_place_{kept}" if isinstance(kept, str) else "set")
        if isinstance(kept, Reminder):
            log.info("reminder set", extra={"reminder": kept.id, "due": kept.due, "pii": {"text": text}})
        return kept

    async def all(self) -> list[Reminder] | None:
        """Return the reminders."""
        return await self._ask(self.reminders.read(self.mac))

    async def cancel(self, ids: list[str]) -> int | None:
        """Delete reminders."""
        return await self._ask(self.reminders.cancel(self.mac, ids))

    async def _ask(self, asked: Awaitable[T]) -> T | None:
        try:
            return await asked
        except (Fenced, Unavailable) as error:
            # If this worker lost the shard, the turn ends at its next write.
            log.warning("reminders not reached", extra={"reason": str(error)})
            return None
