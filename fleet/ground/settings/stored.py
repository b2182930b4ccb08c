"""Settings as JSON, for another process of the same user. They hold secrets in clear."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import JsonValue, SecretStr

from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings

_CHOSEN: Final = "chosen"
"""Beside the settings: the names of those that are no defaults."""


def store(settings: Settings) -> dict[str, JsonValue]:
    """Return all settings, and which of them somebody chose."""
    stored: dict[str, JsonValue] = settings.model_dump(mode="json")
    for name in stored:
        value = getattr(settings, name)
        if isinstance(value, SecretStr):
            stored[name] = value.get_secret_value()
    stored[_CHOSEN] = list(settings.model_fields_set)
    return stored


def restore(stored: Mapping[str, JsonValue]) -> Settings:
    """Return the settings that were stored, whatever the environment of this process says.

    Raises:
        ConfigError: Another version of fleet stored them.
    """
    values: dict[str, Any] = dict(stored)
    chosen = values.pop(_CHOSEN, None)
    try:
        if not isinstance(chosen, list) or values.keys() != Settings.model_fields.keys():
            raise ValueError("they are others")
        read = Settings(**values)
    except ValueError as error:
        raise ConfigError("the fleet that runs here is of another version") from error
    values = {name: getattr(read, name) for name in values}
    return Settings.model_construct(_fields_set=set(chosen), **values)
