"""The settings that a worker reads."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The slice of the settings that `fleet worker` uses."""

    language: str
    languages: str
    prompt: str | None
    turn_seconds: float
    tool_seconds: float
    tool_policy: str
    history_messages: int
    history_seconds: int
    mcp_enabled: bool
    memory: Literal["on", "off"]
    conversations: Literal["on", "off"]
    shards: int
    lease_seconds: float
    edge_sessions: int
    rate_hellos: str
    rate_tools: str
    refused_devices: str
    timezone: str
    tls_cert: Path | None
    https_port: int
    public_host: str | None
    http_port: int
    http_public: str | None
