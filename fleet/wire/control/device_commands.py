"""Commands that wait for a device, as the API of control gives and takes them."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from fleet.wire.control.jobs import LONGEST_LIFE
from fleet.wire.control.shapes import NUMBER, Shape, Time

CommandState = Literal[
    "queued", "waiting", "sent", "ok", "error", "unknown", "expired", "superseded", "cancelled", "skipped"
]
"""`waiting`: for the device. `unknown`: it was sent, and nobody can tell whether the device did it. `skipped`: the
device has no such tool any more, or is revoked."""


class DeviceCommandRequest(Shape):
    """A call of a tool that waits until the device is there."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"tool": "self.audio_speaker.set_volume", "arguments": {"volume": 40}, "key": "volume"}]
        }
    )
    tool: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    arguments: Annotated[dict[str, Any], Field(default_factory=dict, max_length=64)]
    """They must fit the tool's schema."""
    expires_seconds: Annotated[int, Field(ge=1, le=LONGEST_LIFE), NUMBER] = 24 * 3600
    """After that it is given up, if it was not sent."""
    key: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{0,32}$")] = ""
    """Replaces an older command of the device with the same key, unless that was sent; empty for none."""
    idle: bool = True
    """Whether it waits until the device's session is over."""


class DeviceCommandState(Shape):
    """A command of a device. It is sent at most once."""

    id: int
    device: str
    tool: str
    arguments: dict[str, Any]
    key: str
    state: CommandState
    text: str
    """The device's answer, or what it waits for."""
    created: Time
    expires: Time
