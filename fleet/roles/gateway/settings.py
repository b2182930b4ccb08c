"""The settings that a gateway reads."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """The settings that a gateway reads."""

    wss_port: int
    gateway_tokens: bool
    gateway_origins: str
    gateway_each: int | None
    rate_gateway: str
    cloud_host: str
    cloud_port: int
    cloud_ping_interval: float
    cloud_ping_timeout: float
    cloud_max_connections: int
    llm_enable_context: bool
    mcp_enabled: bool
    client_tools_enabled: bool
    client_tools_max_count: int
    client_tool_timeout: float
    client_tool_result_queue_size: int
    prompt: str | None
    tool_seconds: float
    tool_policy: str
    operator_tokens_file: Path | None
    trusted_proxies: str
    timezone: str
    tls_only: bool
    data_dir: Path
