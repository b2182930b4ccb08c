"""What jobs do with a device: a kind is a call of a tool.

Here is the place for kinds that are more than that: firmware, announce, agent, shadow, rotate_credentials.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fleet.core.tool_policy import risk_of
from fleet.wire.job_states import Collected, JobKind

_COLLECTED: Final[Mapping[str, str]] = {"status": "self.get_device_status", "system": "self.get_system_info"}
_SETTERS: Final = frozenset(
    {"self.audio_speaker.set_volume", "self.screen.set_brightness", "self.screen.set_theme", "self.system.set_aec"}
)
"""Tools that set a value: doing it twice is doing it once."""


@dataclass(frozen=True, slots=True)
class JobCall:
    """The call that a job makes on each device."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    attribute: str = ""
    """The attribute of the device that the answer becomes; empty for none."""

    @property
    def dangerous(self) -> bool:
        """Whether the call needs the scope devices:dangerous."""
        return risk_of(self.tool, "device") == "dangerous"

    @property
    def repeatable(self) -> bool:
        """Whether a call whose outcome is unknown may be made again."""
        return self.tool in _SETTERS or risk_of(self.tool, "device") == "read"


def call_of(kind: JobKind, tool: str, arguments: Mapping[str, Any], collect: Collected) -> JobCall:
    """Return the call of a job.

    Args:
        kind: Of the job.
        tool: Of the kind `tool`.
        arguments: Of the kind `tool`.
        collect: Of the kind `collect`: what is asked for.
    """
    match kind:
        case "tool":
            return JobCall(tool, arguments)
        case "reboot":
            return JobCall("self.reboot")
        case "collect":
            return JobCall(_COLLECTED[collect], attribute=collect)
