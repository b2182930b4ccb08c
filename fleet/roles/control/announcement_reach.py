"""How devices would be told an announcement now, by the rules of those who deliver it."""

from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal

from fleet.adapters.redis.devices.notify_faults import MOST as MOST_FAULTS
from fleet.adapters.redis.devices.notify_faults import read_faults
from fleet.adapters.redis.shards.device_tallies import DeviceKind
from fleet.core.announcement_ways import is_open
from fleet.core.api_address import api_address
from fleet.core.job_holds import QUIET, hold_of
from fleet.roles.control.device_dry_run import ReadyDevices
from fleet.roles.control.settings import ControlSettings
from fleet.wire.announcements import WAYS, Way
from fleet.wire.control.announcements import AnnouncementRequest

NO_WAY: Final = "it has none of these ways"
QUIET_TOO_LONG: Final = "its quiet hours last longer than the announcement"
Fate = Literal["told", "waiting", "skipped"]


@dataclass(frozen=True, slots=True)
class AnnouncementReach:
    """The rules for one announcement.

    Args:
        announcement: What is to be told.
        idle: Whether devices in a session are left alone.
        settings: Of control; those of workers say the same.
        now: In ms since 1970.
    """

    announcement: AnnouncementRequest
    idle: bool
    settings: ControlSettings
    now: int

    def count(self, devices: ReadyDevices) -> Counter[tuple[Fate, str]]:
        """Return what becomes of devices: how many are told by each way, wait or are skipped, and for which reason."""
        found: Counter[tuple[Fate, str]] = Counter()
        for kind, count in devices.kinds.items():
            found[self.of(kind)] += count
        exact = Counter({fate: devices.scaled(count) for fate, count in found.items()})
        if exact:  # Rounded numbers need not have the right sum.
            exact[exact.most_common(1)[0][0]] += devices.ready - exact.total()
        return exact

    def of(self, device: DeviceKind) -> tuple[Fate, str]:
        """Return what becomes of one device."""
        hold = hold_of(device, self.now, self.settings.timezone, idle=self.idle, quiet=self.announcement.quiet)
        if hold is not None:
            too_long = hold.reason == QUIET and hold.left_ms >= self.announcement.expires_seconds * 1000
            return ("skipped", QUIET_TOO_LONG) if too_long else ("waiting", hold.reason)
        way = next((one for one in WAYS if one in self.announcement.ways and self._takes(one, device)), None)
        return ("skipped", NO_WAY) if way is None else ("told", way)

    def _takes(self, way: Way, device: DeviceKind) -> bool:
        if way == "wake":  # The last one.
            return True
        if not is_open(way, speaks=device.speaks, dialect=device.dialect, firmware=device.firmware):
            return False
        if way != "notify":
            return True
        fetches = read_faults(device.unfetched, device.firmware) < MOST_FAULTS
        return fetches and api_address(self.settings, device.host) is not None
