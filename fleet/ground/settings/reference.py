"""Every setting with what an operator must know of it, in groups: what `fleet settings` shows."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from fleet.ground.settings import Settings
from fleet.ground.settings.conversation import Conversation
from fleet.ground.settings.emqx import Emqx
from fleet.ground.settings.fields import Hidden
from fleet.ground.settings.gateway import GatewayApi
from fleet.ground.settings.gateway_access import GatewayAccess
from fleet.ground.settings.identity import Identity
from fleet.ground.settings.logs import Logging
from fleet.ground.settings.metrics import Metering
from fleet.ground.settings.models import Models
from fleet.ground.settings.operators import Operating
from fleet.ground.settings.places import Places
from fleet.ground.settings.rates import Rates
from fleet.ground.settings.registrar import Registering
from fleet.ground.settings.server_tools import ServerSide
from fleet.ground.settings.sharding import Sharding
from fleet.ground.settings.tls import Tls
from fleet.ground.settings.wording import allowed, plain_type, shown, told, variables

TITLES: Final[Mapping[type[BaseModel], str]] = {
    Places: "Addresses and ports",
    Identity: "Devices and keys",
    Tls: "TLS",
    Models: "Models",
    Conversation: "Conversations",
    ServerSide: "Tools of the server",
    GatewayApi: "Gateway",
    GatewayAccess: "Access to the gateway",
    Registering: "Clients that are devices",
    Sharding: "Processes",
    Rates: "Limits",
    Operating: "Operators",
    Emqx: "EMQX",
    Metering: "Metrics, health, traces",
    Logging: "Log",
}

DOCUMENTED: Final[Mapping[str, tuple[str, str]]] = {
    "CLOUD_HOST": ("host", "0.0.0.0"),  # noqa: S104 - what the document says
    "CLOUD_PORT": ("port", "9400"),
    "CLOUD_PING_INTERVAL": ("ping_interval", "30"),
    "CLOUD_PING_TIMEOUT": ("ping_timeout", "300"),
    "CLOUD_MAX_CONNECTIONS": ("max_connections", "100"),
    "CLOUD_SESSION_TIMEOUT": ("session_timeout", "3600"),
    "CLOUD_LOG_LEVEL": ("log_level", "INFO"),
    "CLOUD_LOG_FORMAT": ("log_format", "json"),
    "LLM_BASE_URL": ("base_url", "http://192.168.13.228:8000/v1/"),
    "LLM_MODEL": ("model", "Qwen3-30B-A3B"),
    "LLM_API_KEY": ("api_key", "null"),
    "LLM_TIMEOUT": ("timeout", "120"),
    "LLM_TEMPERATURE": ("temperature", "0.7"),
    "LLM_MAX_TOKENS": ("max_tokens", "2048"),
    "LLM_ENABLE_CONTEXT": ("enable_context", "false"),
    "MCP_ENABLED": ("enabled", "true"),
    "MCP_SERVER_NAME": ("server_name", "arcs-mini-mcp-server"),
    "MCP_PROTOCOL_VERSION": ("protocol_version", "2024-11-05"),
    "CLIENT_TOOLS_ENABLED": ("client_tools_enabled", "true"),
    "CLIENT_TOOLS_MAX_COUNT": ("client_tools_max_count", "32"),
    "CLIENT_TOOL_TIMEOUT": ("client_tool_timeout", "30"),
    "CLIENT_TOOL_RESULT_QUEUE_SIZE": ("client_tool_result_queue_size", "10"),
}
"""Section 8 of the LLM Gateway API's document: its parameter and its default of each variable."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A setting."""

    name: str
    variable: str
    also: str
    """A further variable that gives it; empty without one."""
    allowed: str
    default: str
    """As it is written into a variable; empty where nothing is the default."""
    without: str
    """What counts while it is not set and has no default."""
    readers: tuple[str, ...]
    alone: bool
    same: bool
    hidden: Hidden | None
    meaning: str


@dataclass(frozen=True, slots=True)
class Group:
    """Settings that belong together."""

    title: str
    purpose: str
    entries: tuple[Entry, ...]


def groups() -> tuple[Group, ...]:
    """Return all settings in their groups."""
    return tuple(
        Group(title, _purpose(part), tuple(_entry(name, part.model_fields[name]) for name in part.model_fields))
        for part, title in TITLES.items()
    )


def for_up() -> str:
    """Return the variables that `fleet up` does not read, in one sentence's words."""
    alone = [entry.variable for group in groups() for entry in group.entries if entry.alone]
    return ", ".join(f"`{one}`" for one in alone)


def is_changed(name: str, settings: Settings) -> bool:
    """Return whether a setting has another value than its default."""
    return bool(getattr(settings, name) != Settings.model_fields[name].default)


def _entry(name: str, field: FieldInfo) -> Entry:
    usual, *others = variables(name, field)
    about = told(field)
    hidden: Hidden | None = "value" if plain_type(field) is SecretStr else about.get("hidden")
    return Entry(
        name=name,
        variable=usual,
        also=", ".join(others),
        allowed=allowed(field),
        default=_default(field.default),
        without=about.get("without", "none" if field.default is None else ""),
        readers=tuple(about["readers"]),
        alone=about.get("alone", False),
        same=about.get("same", False),
        hidden=hidden,
        meaning=field.description or "",
    )


def _default(value: object) -> str:
    """Return a default as everybody has it: that of a path is below the reader's own home."""
    if isinstance(value, Path) and value.is_relative_to(Path.home()):
        return f"~/{value.relative_to(Path.home())}"
    return shown(value)


def _purpose(part: type[BaseModel]) -> str:
    return " ".join((part.__doc__ or "").split())
