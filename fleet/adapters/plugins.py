"""Adapters of other packages, found by name among Python entry points (docs/howto/write-a-plugin.md).

A plugin runs in this process, with all rights of this process. Only a plugin that a setting names is loaded.
"""

from collections.abc import Iterable
from importlib.metadata import entry_points
from typing import Any, Literal

from fleet.ground.errors import ConfigError

Group = Literal["fleet.asr", "fleet.tts", "fleet.llm", "fleet.tools"]


def load_plugin(variable: str, name: str, group: Group, built_in: Iterable[str] = ()) -> Any:
    """Return the factory of a plugin; its type is defined by the group.

    Args:
        variable: The setting that chose it, for messages.
        name: Of the entry point.
        group: The kind of plugin.
        built_in: The names that need no plugin, for messages.

    Raises:
        ConfigError: No plugin, or more than one, has this name; or it cannot be loaded.
    """
    points = entry_points(group=group)
    found = [point for point in points if point.name == name]
    if not found:
        known = ", ".join([*built_in, *sorted(points.names)]) or "none"
        raise ConfigError(f"{variable}: there is no {name!r}; there are: {known}")
    if len(found) > 1:
        owners = ", ".join(sorted(point.value for point in found))
        raise ConfigError(f"{variable}: more than one plugin is called {name!r}: {owners}")
    try:
        factory = found[0].load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{variable}: the plugin {name!r} cannot be loaded: {error}") from error
    if not callable(factory):
        raise ConfigError(f"{variable}: the plugin {name!r} names {found[0].value}, which cannot be called")
    return factory
