"""What a conversation's store knows of a device, for the copy in the registry."""

from dataclasses import dataclass
from typing import Literal

from fleet.wire.control.device_texts import DeviceState

DOCTOR = "02:d0:c7"
"""MACs of the devices of `fleet doctor` begin so. They are locally administered, so no board has one."""


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """A device as Redis knows it; texts are empty where nothing is known.

    Times are milliseconds since 1970, 0 for never.
    """

    mac: str
    state: DeviceState | Literal[""] = ""
    """Empty where nothing is decided about it."""
    stranger: bool = False
    """Whether it never connected and no operator bound it: any client may ask bootstrap with any MAC."""
    board: str = ""
    firmware: str = ""
    serial: str = ""
    client: str = ""
    language: str = ""
    key: str = ""
    """Id of the key of its password: that of its connection, else of its last bootstrap."""
    online: bool = False
    presence_at: int = 0
    """When it connected, or when its connection ended."""
    last_boot: int = 0
    pages: str = ""
    """Names its tool list: devices with equal texts offer the same tools. Empty: not known."""
    has_tools: bool = False
    tenant: int = 0
    """By which it shares places with others; 0 for the tenant of the site."""

    @property
    def known(self) -> bool:
        """Whether Redis has anything about it."""
        return bool(self.state or self.presence_at or self.last_boot)

    @property
    def last_seen(self) -> int:
        return max(self.presence_at, self.last_boot)

    @property
    def tool_key(self) -> str:
        """Names its tool list among those of all devices; empty where it is not known whether it has one."""
        return (self.pages or self.mac) if self.has_tools else ""
