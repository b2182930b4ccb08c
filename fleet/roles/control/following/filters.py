"""Which events a client follows."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from fleet.adapters.sql.event_rows import LOST, StoredEvent
from fleet.core.query.conditions import Condition


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Events of one tenant.

    `kinds` are kinds or families (`turn` for all kinds that begin with `turn.`), none for all. `mac` is 0 for all
    devices. `condition` holds for the device of the event. Gaps (`events.lost`) always pass.
    """

    tenant: int
    kinds: frozenset[str] = frozenset()
    mac: int = 0
    condition: Condition | None = None

    def passes(self, event: StoredEvent) -> bool:
        """Whether an event passes, apart from the condition."""
        if event.tenant != self.tenant:
            return False
        if event.kind == LOST:
            return True
        if self.mac and event.mac != self.mac:
            return False
        return not self.kinds or event.kind in self.kinds or event.kind.partition(".")[0] in self.kinds


class DeviceMatcher(Protocol):
    """Looks which devices meet conditions."""

    async def matching(self, tenant: int, conditions: Sequence[Condition], macs: Collection[int]) -> list[set[int]]:
        """Return for each condition those of some devices of a tenant that meet it.

        Raises:
            Unavailable: The database does not answer.
        """


async def select(events: Sequence[StoredEvent], wanted: EventFilter, matcher: DeviceMatcher) -> list[StoredEvent]:
    """Return the events that pass a filter.

    Raises:
        Unavailable: The database does not answer.
    """
    found = [one for one in events if wanted.passes(one)]
    if wanted.condition is None or not found:
        return found
    (macs,) = await matcher.matching(wanted.tenant, [wanted.condition], {one.mac for one in found})
    return [one for one in found if one.mac in macs or one.kind == LOST]
