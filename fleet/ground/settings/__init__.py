"""All settings, and the only reader of the environment.

Each setting is a `FLEET_…` variable; those of the models have their well-known names (`LLM_BASE_URL`). A TOML
file named by `FLEET_CONFIG` may hold the same names in lower case, without `fleet_`; the environment wins over it. A
`FLEET_…` variable that is no setting is an error, so that a typing mistake is found. So is a variable such as
`LLM_MODLE`, whose name is close to a setting of the models; other programs may have `LLM_…` variables of their own.
"""

import functools
import os
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from fleet.ground.errors import ConfigError
from fleet.ground.settings.addresses import AddressGroup
from fleet.ground.settings.control import ControlGroup
from fleet.ground.settings.control_client import ControlClientGroup
from fleet.ground.settings.conversation import ConversationGroup
from fleet.ground.settings.emqx import EmqxGroup
from fleet.ground.settings.fields import MODEL_PREFIXES, PREFIX
from fleet.ground.settings.gateway import GatewayApiGroup
from fleet.ground.settings.gateway_access import GatewayAccessGroup
from fleet.ground.settings.identity import IdentityGroup
from fleet.ground.settings.logs import LoggingGroup
from fleet.ground.settings.models import ModelGroup
from fleet.ground.settings.monitoring import MonitoringGroup
from fleet.ground.settings.operators import OperatorGroup
from fleet.ground.settings.rates import RateGroup
from fleet.ground.settings.registrar import RegistrarGroup
from fleet.ground.settings.server_tools import ServerToolGroup
from fleet.ground.settings.sharding import ShardingGroup
from fleet.ground.settings.tls import TlsGroup
from fleet.ground.settings.wording import explain, nearest, unknown, variables


class Settings(
    AddressGroup,
    IdentityGroup,
    TlsGroup,
    ModelGroup,
    ConversationGroup,
    ServerToolGroup,
    GatewayApiGroup,
    GatewayAccessGroup,
    RegistrarGroup,
    ShardingGroup,
    RateGroup,
    OperatorGroup,
    ControlGroup,
    ControlClientGroup,
    EmqxGroup,
    MonitoringGroup,
    LoggingGroup,
    BaseSettings,
):
    """Every setting of every role; the documentation has the groups in this order."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", populate_by_name=True, validate_default=True)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        file = os.environ.get(f"{PREFIX}CONFIG")
        toml = (TomlConfigSettingsSource(settings_cls, toml_file=file),) if file else ()
        return (init_settings, env_settings, *toml)


def load(**overrides: Any) -> Settings:
    """Return the settings from the environment and the TOML file; `overrides` that are None are left out.

    Raises:
        ConfigError: A value is wrong, a `FLEET_…` variable is unknown, or the file cannot be read.
    """
    _refuse_unknown_variables()
    file = os.environ.get(f"{PREFIX}CONFIG")
    if file and not Path(file).is_file():
        raise ConfigError(f"FLEET_CONFIG names {file}, which is no file")
    try:
        return Settings(**{name: value for name, value in overrides.items() if value is not None})
    except ValidationError as error:
        faults = (explain(fault, Settings.model_fields, file) for fault in error.errors(include_url=False))
        raise ConfigError("; ".join(faults)) from error
    except (ValueError, OSError) as error:
        raise ConfigError(f"{file}: {error}") from error


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return variables(name, Settings.model_fields[name])[0]


@functools.cache
def _known() -> frozenset[str]:
    """Return the environment variables of all settings."""
    return frozenset(one for name, field in Settings.model_fields.items() for one in variables(name, field))


def _refuse_unknown_variables() -> None:
    known = _known()
    strange = sorted(name for name in os.environ if name not in known and name != f"{PREFIX}CONFIG")
    wrong = [
        name
        for name in strange
        if name.startswith(PREFIX) or (name.startswith(MODEL_PREFIXES) and nearest(name, known) is not None)
    ]
    if wrong:
        faults = ", ".join(unknown(name, Settings.model_fields) for name in wrong)
        raise ConfigError(f"{faults}; `fleet settings` lists all")
