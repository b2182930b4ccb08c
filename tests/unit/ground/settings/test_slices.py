"""A part of the server reads its slice of the settings, and no part but those that put roles together sees them all."""

import ast
import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import fleet
from fleet.adapters.net.http.serving import HttpSettings
from fleet.adapters.speech.load import SpeechSettings
from fleet.adapters.tools.load import ServerToolSettings
from fleet.ground.settings import Settings
from fleet.ground.settings.slices import slice_of
from fleet.roles.api.settings import ApiSettings
from fleet.roles.edge.settings import EdgeSettings
from fleet.roles.gateway.settings import GatewaySettings
from fleet.roles.worker.settings import WorkerSettings

ROOT = Path(fleet.__file__).parent
ROLES = {"worker": WorkerSettings, "edge": EdgeSettings, "api": ApiSettings, "gateway": GatewaySettings}
SLICES = (*ROLES.values(), HttpSettings, SpeechSettings, ServerToolSettings)


def files(*rooms: str) -> Iterator[Path]:
    for room in rooms:
        yield from (ROOT / room).rglob("*.py")


@functools.cache
def imports(path: Path) -> tuple[ast.ImportFrom, ...]:
    return tuple(node for node in nodes(path) if isinstance(node, ast.ImportFrom) and node.module)


@functools.cache
def attributes(path: Path) -> frozenset[str]:
    return frozenset(node.attr for node in nodes(path) if isinstance(node, ast.Attribute))


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("kind", SLICES)
def test_fields_of_a_slice_are_settings_with_their_types(kind: type[Any]) -> None:
    hints = get_type_hints(kind)
    hints.pop("model_fields_set", None)  # which of them somebody set
    settings = get_type_hints(Settings)  # without validators
    assert {name: settings[name] for name in hints} == hints


@pytest.mark.parametrize("role", ROLES)
def test_role_is_named_among_the_readers_of_its_settings(role: str) -> None:
    for field in dataclasses.fields(ROLES[role]):
        about = Settings.model_fields[field.name].json_schema_extra
        assert role in about["roles"], field.name


@pytest.mark.parametrize("role", ROLES)
def test_role_reads_every_setting_of_its_slice(role: str) -> None:
    own = list(files(f"roles/{role}"))
    used = {f"{node.module}".replace(".", "/") + ".py" for path in own for node in imports(path)}
    core = [path for path in files("core") if f"fleet/{path.relative_to(ROOT)}" in used]
    read = {name for path in (*own, *core) for name in attributes(path)}
    assert core
    assert {field.name for field in dataclasses.fields(ROLES[role])} <= read


def test_slice_has_the_values_of_the_settings_and_cannot_change() -> None:
    found = slice_of(Settings(udp_port=1234, wake_words="hi"), EdgeSettings)
    assert (found.udp_port, found.wake_words, found.idle_seconds) == (1234, "hi", 60.0)
    assert not hasattr(found, "keys")
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.udp_port = 1  # type: ignore[misc]


def test_roles_adapters_core_and_wire_never_see_all_settings() -> None:
    seen = [
        (str(path.relative_to(ROOT)), name.name)
        for path in files("roles", "adapters", "core", "wire")
        # To parse all files takes a second of a core.
        if "fleet.ground.settings" in path.read_text(encoding="utf-8")
        for node in imports(path)
        if node.module == "fleet.ground.settings"
        for name in node.names
    ]
    assert seen == []
