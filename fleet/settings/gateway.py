"""The settings of the LLM Gateway API, under the names of its document (section 8), without a prefix."""

from typing import Literal

from pydantic import AliasChoices, BaseModel, Field, field_validator

from fleet.settings.fields import EVERYWHERE, named

TIMEOUT = 120.0
"""Seconds: the document's default of LLM_TIMEOUT."""
TEMPERATURE = 0.7
"""Of LLM_TEMPERATURE."""
MAX_TOKENS = 2048
"""Of LLM_MAX_TOKENS."""

Level = Literal["debug", "info", "warning", "error"]

_LEVELS = {"warn": "warning", "critical": "error", "fatal": "error"}
_FORMATS = {"text": "console", "plain": "console", "simple": "console"}


def _between(variable: str, default: float, low: float, description: str) -> float:
    """Return a field that has a lower edge."""
    field: float = Field(
        default, ge=low, validation_alias=AliasChoices(variable, variable.lower()), description=description
    )
    return field


class GatewayApi(BaseModel):
    """The gateway's own settings; those of the model it shares, with the document's defaults where they differ."""

    cloud_host: str = named("CLOUD_HOST", EVERYWHERE, "Address on which the gateway listens.")
    cloud_port: int = Field(
        9400,
        ge=0,
        le=65535,
        validation_alias=AliasChoices("CLOUD_PORT", "cloud_port"),
        description="Port of the gateway: WebSocket, the test page and health.",
    )
    cloud_ping_interval: float = _between("CLOUD_PING_INTERVAL", 30, 0.1, "Seconds between the gateway's pings.")
    cloud_ping_timeout: float = _between(
        "CLOUD_PING_TIMEOUT", 300, 0.1, "Seconds without an answer to a ping after which a connection is closed."
    )
    cloud_max_connections: int = named("CLOUD_MAX_CONNECTIONS", 100, "Connections of a gateway; 1013 closes the next.")
    cloud_session_timeout: int = named(
        "CLOUD_SESSION_TIMEOUT", 3600, "Seconds after its last use for which a session of the gateway can be resumed."
    )
    cloud_log_level: Level | None = named(
        "CLOUD_LOG_LEVEL", None, "Lowest level that `fleet gateway` writes. Default: FLEET_LOG_LEVEL."
    )
    cloud_log_format: Literal["json", "console"] | None = named(
        "CLOUD_LOG_FORMAT", None, "`json` or `console`, for `fleet gateway`. Default: FLEET_LOG_FORMAT if set, or json."
    )
    llm_enable_context: bool = named(
        "LLM_ENABLE_CONTEXT", False, "Whether the gateway's model is given the history before a client says so."
    )
    mcp_enabled: bool = named("MCP_ENABLED", True, "Whether the gateway offers tools of the server at all.")
    mcp_server_name: str = named("MCP_SERVER_NAME", "arcs-mini-mcp-server", "The gateway's name towards MCP servers.")
    mcp_protocol_version: str = named(
        "MCP_PROTOCOL_VERSION", "2024-11-05", "Lowest version of MCP that is spoken with MCP servers."
    )
    client_tools_enabled: bool = named("CLIENT_TOOLS_ENABLED", True, "Whether clients may register tools.")
    client_tools_max_count: int = named("CLIENT_TOOLS_MAX_COUNT", 32, "Tools that a connection may register.")
    client_tool_timeout: float = _between("CLIENT_TOOL_TIMEOUT", 30, 0.05, "Seconds to wait for a client's tool.")
    client_tool_result_queue_size: int = named(
        "CLIENT_TOOL_RESULT_QUEUE_SIZE", 10, "Callbacks of a connection that wait for their result; others come later."
    )

    @field_validator(
        "cloud_max_connections",
        "cloud_session_timeout",
        "client_tools_max_count",
        "client_tool_result_queue_size",
    )
    @classmethod
    def _is_positive(cls, value: int) -> int:
        if value < 1:
            raise ValueError("must be 1 or more")
        return value

    @field_validator("cloud_log_level", mode="before")
    @classmethod
    def _name_level(cls, value: object) -> object:
        return _LEVELS.get(value.lower(), value.lower()) if isinstance(value, str) else value

    @field_validator("cloud_log_format", mode="before")
    @classmethod
    def _name_format(cls, value: object) -> object:
        return _FORMATS.get(value.lower(), value.lower()) if isinstance(value, str) else value
