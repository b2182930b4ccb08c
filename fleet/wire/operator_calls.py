"""An operator's call of a tool, as it waits in a shard's queue for the shard's owner."""

from typing import Any, Final

from msgspec import Struct
from msgspec.json import Decoder

from fleet.wire.announcements import DeviceAnnouncement


class OperatorCall(Struct, frozen=True, kw_only=True):
    """A call; its arguments fit the tool's schema."""

    device: str
    call: str
    """Its id, which names its record."""
    tool: str
    """The tool's name as the device announced it."""
    arguments: dict[str, Any]
    idle: bool = False
    """Whether it is not sent while the device is in a session."""
    announcement: DeviceAnnouncement | None = None
    """What the device is told instead of a call of a tool; an older worker calls a tool that no device has."""
    tenant: int = 0
    """Who has its place in the queue; 0 for nobody."""


LATE: Final = "it had to wait for too long"
OFFLINE: Final = "the device is not connected"
IN_SESSION: Final = "the device is in a session"
AWAKE_LATER: Final = "it waits for the next session of the device"
"""Why a call was not sent, as its outcome says."""
LOST: Final = "the server lost what became of it"
NO_OUTCOME: Final = "its outcome did not come"
"""Why nobody knows what became of a call."""


OPERATOR_CALLS: Final[Decoder[OperatorCall]] = Decoder(OperatorCall)
