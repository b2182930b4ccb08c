"""What a dry run finds out of many devices: their number, who is skipped, and how they can be reached now."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fleet.adapters.redis.shards.device_tallies import DeviceKind, DeviceTallies
from fleet.adapters.sql.engines import WAIT_SECONDS
from fleet.adapters.sql.job_targets import JobTargets, TargetCounts
from fleet.adapters.sql.mac_numbers import mac_text
from fleet.adapters.sql.reading_places import ReadingPlaces
from fleet.roles.control.services import ControlServices
from fleet.wire.control.jobs import JobPreview, SkipCount

MOST_LOOKED: Final = 100_000
"""Connected devices of which Redis is asked; of more of them, a sample."""


@dataclass(frozen=True, slots=True)
class ReadyDevices:
    """The devices that are connected and not skipped, by their kinds."""

    kinds: Mapping[DeviceKind, int]
    ready: int

    @property
    def looked(self) -> int:
        """At how many of them was looked."""
        return sum(self.kinds.values())

    def scaled(self, count: int) -> int:
        """Return what a number of those that were looked at means for all."""
        return round(count * self.ready / self.looked) if self.looked else 0


class DeviceDryRun:
    """Looks at devices for dry runs: two at a time, one of each tenant.

    Args:
        services: Of control.
    """

    def __init__(self, services: ControlServices) -> None:
        self._tallies, self._places = DeviceTallies(services.store), ReadingPlaces(2, 1)

    async def kinds(
        self, tenant: int, targets: JobTargets, counts: TargetCounts, *, timezones: bool = False
    ) -> ReadyDevices:
        """Return what kinds of connected devices a target has.

        Args:
            tenant: Who asks.
            targets: The devices.
            counts: Of them.
            timezones: Whether their time zones matter.

        Raises:
            Unavailable: Redis or the database does not answer, or too many ask.
        """
        if not counts.ready:
            return ReadyDevices(Counter(), 0)
        await self._places.take(tenant, WAIT_SECONDS)
        try:
            macs = [mac_text(mac) for mac in await targets.connected(counts, MOST_LOOKED)]
            return ReadyDevices(await self._tallies.count(macs, timezones=timezones), counts.ready)
        finally:
            self._places.give(tenant)


def preview_of(counts: TargetCounts) -> JobPreview:
    """Return the answer of a dry run."""
    skipped = [SkipCount(reason=reason, devices=count) for reason, count in sorted(counts.skipped.items())]
    return JobPreview(devices=counts.devices, online=counts.online, skipped=skipped)
