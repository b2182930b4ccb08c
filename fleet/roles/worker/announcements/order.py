"""What one device is to be told."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from fleet.roles.worker.ownership.shard import Shard
from fleet.wire.announcements import DeviceAnnouncement
from fleet.wire.clips import ClipDelivery

Wanted = Callable[[], Awaitable[bool]]
"""Returns whether an announcement is still to be told."""
State = Literal["spoken", "sent", "taken", "played", "cut_short", "shown"]


@dataclass(frozen=True, slots=True)
class DeviceDelivery:
    """An announcement to one device, and its shard."""

    shard: Shard
    mac: str
    announcement: DeviceAnnouncement
    delivery: ClipDelivery
    wanted: Wanted

    @property
    def turn(self) -> str:
        """The turn of its own in which it is spoken; always the same."""
        return self.delivery.id
