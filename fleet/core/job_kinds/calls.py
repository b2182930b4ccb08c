"""The kinds `tool`, `reboot` and `collect`: a call of a tool on each device."""

from collections.abc import Mapping
from typing import Any, Final

from fleet.core.job_kinds.terms import JobTerms
from fleet.core.permissions import DEVICES_COMMAND, DEVICES_DANGEROUS
from fleet.core.tool_policy import risk_of
from fleet.wire.job_states import Collected

_COLLECTED: Final[Mapping[Collected, str]] = {"status": "self.get_device_status", "system": "self.get_system_info"}
_SETTERS: Final = frozenset(
    {"self.audio_speaker.set_volume", "self.screen.set_brightness", "self.screen.set_theme", "self.system.set_aec"}
)
"""Tools that set a value: doing it twice is doing it once."""


def call_terms(tool: str, arguments: Mapping[str, Any] | None = None, attribute: str = "") -> JobTerms:
    """Return the terms of a job that is one call of a tool on each device."""
    risk = risk_of(tool, "device")
    return JobTerms(
        tool=tool,
        arguments=arguments or {},
        attribute=attribute,
        scopes=(DEVICES_COMMAND, DEVICES_DANGEROUS) if risk == "dangerous" else (DEVICES_COMMAND,),
        repeatable=tool in _SETTERS or risk == "read",
    )


def collect_terms(collected: Collected) -> JobTerms:
    """Return the terms of a job that asks each device for something and keeps it as an attribute."""
    return call_terms(_COLLECTED[collected], attribute=collected)
