"""The interface of a dialect: pure functions over the shared messages, and the capabilities of its devices."""

from dataclasses import dataclass
from typing import Literal, Protocol

from fleet.wire.messages import DeviceCommand, DeviceEvent


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What devices of a dialect can do. Roles check a capability and never compare the name of a dialect."""

    audio: bool = False
    """An edge can publish `stt`, `tts` and `llm` in this dialect, so a session may be opened in it."""
    lists_tools: bool = False
    """The device answers `initialize` and `tools/list`, so it is asked for its tools when it connects. A device without
    this registers them itself (`RegisterToolsEvent`)."""
    firmware_tools: bool = False
    """Names of tools are those of xiaozhi firmware and say how long a call takes (`fleet.core.tool_kinds`). Without
    this every call is a quick one."""
    camera: bool = False
    """The device takes a fresh upload token (`InitializeCommand`) before it takes a photo."""
    notifications: bool = False
    """Recent firmware of the device plays a file when it is idle (`fleet devices notify`)."""
    text: Literal["pieces", "alert", ""] = ""
    """How the device shows an answer as text: as `AiMessageCommand` pieces; as one `AlertCommand` when it has no
    session and so cannot speak; or not at all."""


class Dialect(Protocol):
    """The JSON messages of one kind of device; one file for each dialect."""

    @property
    def name(self) -> str:
        """The dialect's name in a device's record."""

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of its devices."""

    @property
    def mark(self) -> bytes:
        """Bytes that identify a frame of this dialect even if it is not JSON; empty for none."""

    def claims(self, document: object) -> bool:
        """Whether a frame with this JSON belongs to this dialect and to no other."""

    def receive(self, frame: bytes) -> DeviceEvent:
        """Return a frame's event; `MalformedEvent` for an invalid frame. Never raises."""

    def read(self, document: object) -> DeviceEvent:
        """Return the event of a frame from its parsed JSON. Never raises."""

    def send(self, command: DeviceCommand) -> bytes:
        """Return the frame for a command; empty if this dialect has no such message."""
