"""Which roles read a setting: those whose modules name it."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

from fleet.ground.settings import Settings

ROOT = Path(__file__).parents[2]
OPENED_BY = {
    "worker": ("worker", "site", "monitoring"),
    "edge": ("edge", "public_address", "speech", "site", "monitoring"),
    "api": ("api", "site", "monitoring"),
    "gateway": ("gateway", "monitoring"),
    "front": ("front", "monitoring"),
    "control": ("control", "site", "monitoring"),
}
"""The modules of `fleet/run` that a role's command calls."""


_SHARED = ROOT / "fleet/run/start_check.py"
"""Has a function for each role, which checks only settings that the role reads in modules of its own."""


_NAMES = Settings.model_fields.keys() | {"plain_host", "control_tls"}


@functools.cache
def readers() -> dict[str, set[str]]:
    """Return the roles of each setting, as far as imports tell."""
    found: dict[str, set[str]] = {name: set() for name in Settings.model_fields}
    for role, parts in OPENED_BY.items():
        for file in _reached([f"fleet.run.{part}" for part in parts]):
            for name in _read_in(file) if file != _SHARED else ():
                found[name].add(role)
    return found


def _reached(modules: list[str]) -> set[Path]:
    seen: set[Path] = set()
    while modules:
        file = _file(modules.pop())
        if file is not None and file not in seen:
            seen.add(file)
            modules += _imports(file)
    return seen


def _file(module: str) -> Path | None:
    path = ROOT.joinpath(*module.split("."))
    if path.parts[len(ROOT.parts) :][:3] == ("fleet", "ground", "settings"):
        return None
    return next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None)


@functools.cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@functools.cache
def _imports(file: Path) -> tuple[str, ...]:
    return tuple(_imported_by(file))


def _imported_by(file: Path) -> Iterator[str]:
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


@functools.cache
def _read_in(file: Path) -> frozenset[str]:
    return frozenset(_named_in(file))


def _named_in(file: Path) -> Iterator[str]:
    for node in ast.walk(_tree(file)):
        # To write an expression down again costs most of this.
        if isinstance(node, ast.Attribute) and node.attr in _NAMES and ast.unparse(node.value).endswith("settings"):
            if node.attr == "plain_host":
                yield "tls_only"
            elif node.attr == "control_tls":
                yield from ("control_cert", "control_host", "control_proxy")
            else:
                yield node.attr
