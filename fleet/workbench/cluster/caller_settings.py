"""Reads the caller's settings of models and conversations, for all roles."""

from pathlib import Path

from pydantic import BaseModel, SecretStr

from fleet.ground.settings import load
from fleet.ground.settings.conversation import ConversationGroup
from fleet.ground.settings.gateway import GatewayApiGroup
from fleet.ground.settings.logs import LoggingGroup
from fleet.ground.settings.models import ModelGroup
from fleet.ground.settings.server_tools import ServerToolGroup
from fleet.ground.settings.sharding import ShardingGroup
from fleet.workbench.local_servers.server import Value

_GROUPS: tuple[type[BaseModel], ...] = (
    ModelGroup,
    ConversationGroup,
    ServerToolGroup,
    ShardingGroup,
    GatewayApiGroup,
    LoggingGroup,
)
"""Groups of settings that come from the caller; the cluster sets addresses, keys and ports."""


def caller_settings(llm: str | None = None) -> dict[str, Value]:
    """Return the settings in the environment and in the file that FLEET_CONFIG names.

    Args:
        llm: Chat endpoint that overrides LLM_BASE_URL.

    Raises:
        ConfigError: A setting is wrong.
    """
    settings = load(llm_base_url=llm)
    names = {name for group in _GROUPS for name in group.model_fields} & settings.model_fields_set
    return {name: _plain(getattr(settings, name)) for name in sorted(names) if getattr(settings, name) is not None}


def _plain(value: object) -> Value:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, Path):
        return str(value.absolute())
    return value if isinstance(value, bool | int | float) else str(value)
