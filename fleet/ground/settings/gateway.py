"""The settings of the LLM Gateway API, with the names of its document (section 8), without a prefix."""

from typing import Literal

from pydantic import field_validator

from fleet.ground.settings.fields import ANY_ADDRESS, SettingGroup, setting

TEMPERATURE = 0.7
"""Default of LLM_TEMPERATURE in the gateway."""
MAX_TOKENS = 2048
"""Default of LLM_MAX_TOKENS in the gateway."""

Level = Literal["debug", "info", "warning", "error"]

_LEVELS = {"warn": "warning", "critical": "error", "fatal": "error"}
_FORMATS = {"text": "console", "plain": "console", "simple": "console"}


class GatewayApiGroup(SettingGroup):
    """Settings that only the gateway reads. It shares those of the model, with the document's defaults."""

    title = "Gateway"

    cloud_host: str = setting(ANY_ADDRESS, ("gateway",), variable="CLOUD_HOST", syntax="address of this machine")
    """Address on which the gateway listens. Clients need no password unless FLEET_GATEWAY_TOKENS is true."""
    cloud_port: int = setting(9400, ("gateway", "control"), variable="CLOUD_PORT", syntax="port", ge=0, le=65535)
    """Port of the gateway: WebSocket, the test page at /test, /healthz and /readyz."""
    cloud_ping_interval: float = setting(30.0, ("gateway",), variable="CLOUD_PING_INTERVAL", unit="seconds", ge=0.1)
    """Time between the gateway's pings. The idle timeout of a proxy before it must be longer."""
    cloud_ping_timeout: float = setting(300.0, ("gateway",), variable="CLOUD_PING_TIMEOUT", unit="seconds", ge=0.1)
    """Time without an answer to a ping after which a connection is closed."""
    cloud_max_connections: int = setting(100, ("gateway",), variable="CLOUD_MAX_CONNECTIONS", ge=1)
    """Most connections of one gateway; it closes further ones with 1013."""
    cloud_session_timeout: int = setting(3600, ("gateway",), variable="CLOUD_SESSION_TIMEOUT", unit="seconds", ge=1)
    """Time after its last use for which a session can be resumed."""
    cloud_log_level: Level | None = setting(
        None, ("gateway",), variable="CLOUD_LOG_LEVEL", unset="FLEET_LOG_LEVEL", roles_only=True
    )
    """Lowest log level of `fleet gateway`. Capital letters and the names warn, critical and fatal are allowed too."""
    cloud_log_format: Literal["json", "console"] | None = setting(
        None,
        ("gateway",),
        variable="CLOUD_LOG_FORMAT",
        unset="FLEET_LOG_FORMAT if it is set, else `json`",
        roles_only=True,
    )
    """Format of the log of `fleet gateway`. text, plain and simple mean `console`."""
    llm_enable_context: bool = setting(False, ("gateway",), variable="LLM_ENABLE_CONTEXT")
    """Whether the gateway's model gets the session's history before a client sets that with `configure`."""
    mcp_enabled: bool = setting(True, ("worker", "gateway"), variable="MCP_ENABLED")
    """Whether the server offers tools of its own, to clients and to voice devices."""
    mcp_server_name: str = setting("arcs-mini-mcp-server", ("worker", "gateway"), variable="MCP_SERVER_NAME")
    """Name by which fleet introduces itself to MCP servers."""
    mcp_protocol_version: str = setting(
        "2024-11-05", ("worker", "gateway"), variable="MCP_PROTOCOL_VERSION", syntax="date of the version"
    )
    """Lowest version of MCP that fleet accepts from MCP servers."""
    client_tools_enabled: bool = setting(True, ("gateway",), variable="CLIENT_TOOLS_ENABLED")
    """Whether clients of the LLM Gateway API may register tools."""
    client_tools_max_count: int = setting(32, ("gateway",), variable="CLIENT_TOOLS_MAX_COUNT", ge=1)
    """Most tools that one connection may register."""
    client_tool_timeout: float = setting(30.0, ("gateway",), variable="CLIENT_TOOL_TIMEOUT", unit="seconds", ge=0.05)
    """Time to wait for the result of a client's tool."""
    client_tool_result_queue_size: int = setting(10, ("gateway",), variable="CLIENT_TOOL_RESULT_QUEUE_SIZE", ge=1)
    """Most pending calls of a connection's tools; the gateway sends further calls to the client later."""

    @field_validator("cloud_log_level", mode="before")
    @classmethod
    def _name_level(cls, value: object) -> object:
        return _LEVELS.get(value.lower(), value.lower()) if isinstance(value, str) else value

    @field_validator("cloud_log_format", mode="before")
    @classmethod
    def _name_format(cls, value: object) -> object:
        return _FORMATS.get(value.lower(), value.lower()) if isinstance(value, str) else value
