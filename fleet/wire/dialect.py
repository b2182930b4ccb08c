"""What a dialect is: pure functions over the shared vocabulary, and what its devices can do."""

from dataclasses import dataclass
from typing import Literal, Protocol

from fleet.wire.messages import DeviceCommand, DeviceEvent


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What devices of a dialect can do. Roles ask for a capability and never compare the name of a dialect."""

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
    """How a kind of device speaks JSON; one file a dialect."""

    @property
    def name(self) -> str:
        """The name under which a device's record keeps its dialect."""

    @property
    def capabilities(self) -> Capabilities:
        """What its devices can do."""

    @property
    def mark(self) -> bytes:
        """Bytes by which a frame that is not JSON is still known to be of this dialect; empty for none."""

    def claims(self, document: object) -> bool:
        """Whether a frame with this JSON is of this dialect and of no other."""

    def receive(self, frame: bytes) -> DeviceEvent:
        """Return what a frame says; `MalformedEvent` for whatever cannot be understood. Never raises."""

    def read(self, document: object) -> DeviceEvent:
        """Return what a frame says whose JSON was parsed already. Never raises."""

    def send(self, command: DeviceCommand) -> bytes:
        """Return the frame for a command; empty where this dialect has no words for it."""
