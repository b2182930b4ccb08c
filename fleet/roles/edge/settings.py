"""The settings that an edge reads."""

from dataclasses import dataclass
from typing import Literal

from fleet.core.interruption import Sensitivity


@dataclass(frozen=True, slots=True)
class EdgeSettings:
    """The slice of the settings that `fleet edge` uses."""

    language: str
    languages: str
    wake_words: str
    idle_seconds: float
    turn_seconds: float
    endpoint_ms: int
    endpoint_max_ms: int
    pause_ms: int
    interruption: Sensitivity
    interruption_keywords: str
    filler_seconds: float
    unheard_reply: Literal["spoken", "shown", "off"]
    edge_sessions: int
    rate_input: str
    udp_host: str
    udp_port: int
    udp_native: bool
