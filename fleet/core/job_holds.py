"""Why a device is left alone for now, though a job has its turn for it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol

from fleet.core.quiet_hours import QuietHours
from fleet.ground.local_time import own_offset
from fleet.wire.operator_calls import IN_SESSION, OFFLINE

QUIET: Final = "its quiet hours"


class HeldDevice(Protocol):
    """What decides it."""

    @property
    def online(self) -> bool: ...
    @property
    def session(self) -> object:
        """Is false without a session."""

    @property
    def timezone(self) -> str:
        """Empty where it is that of the site."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a device waits, and for how many ms at least."""

    reason: str
    left_ms: int = 0


def hold_of(device: HeldDevice, now: int, timezone: str, *, idle: bool, quiet: str) -> Hold | None:
    """Return why a device waits; None if it does not.

    Args:
        device: As it is now.
        now: In ms since 1970.
        timezone: Of the site.
        idle: Whether devices in a session are left alone.
        quiet: Hours of the device's day in which it is left alone, such as `22:00-07:00`; empty for none.
    """
    if not device.online:
        return Hold(OFFLINE)
    if idle and device.session:
        return Hold(IN_SESSION)
    if quiet:
        at = datetime.fromtimestamp(now / 1000, UTC)
        left = QuietHours.parse(quiet).left(now, own_offset(device.timezone, timezone, at))
        return Hold(QUIET, left) if left else None
    return None
