"""An announcement, as it waits in a shard's queue for the shard's owner."""

from typing import Final, Literal, get_args

from msgspec import Struct

Way = Literal["speech", "notify", "alert", "wake"]
"""How a device gets an announcement. `speech`: spoken in its session. `notify`: an idle device fetches a clip and plays
it. `alert`: shown on its screen. `wake`: kept until its next session, then spoken."""
WAYS: Final[tuple[Way, ...]] = get_args(Way)
"""In the order in which they are tried."""
USUAL_WAYS: Final[tuple[Way, ...]] = ("speech", "notify", "alert")
TOOL: Final = "fleet.announce"
"""Stands in place of a tool in the records of calls."""
LONGEST_TEXT: Final = 500
"""Characters; about a minute of speech."""


class DeviceAnnouncement(Struct, frozen=True):
    """A text for one device."""

    text: str
    language: str = ""
    """ISO 639-1 code, empty to find it out from the text."""
    ways: tuple[Way, ...] = USUAL_WAYS
    reminder: bool = False
    """Whether it is a reminder of the device's user, and not an operator's text."""
    tenant: int = 0
    """Whose operator announces it, or whose device has the reminder; 0 for the tenant of the site's reminders, and in
    what an earlier version wrote."""
