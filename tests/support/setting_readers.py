"""Which roles read a setting: those whose modules name it."""

import ast
import functools
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
            for name in _parts(file)[1] if file != _SHARED else ():
                found[name].add(role)
    return found


def _reached(modules: list[str]) -> set[Path]:
    seen: set[Path] = set()
    while modules:
        file = _file(modules.pop())
        if file is not None and file not in seen:
            seen.add(file)
            modules += _parts(file)[0]
    return seen


def _file(module: str) -> Path | None:
    path = ROOT.joinpath(*module.split("."))
    if path.parts[len(ROOT.parts) :][:3] == ("fleet", "ground", "settings"):
        return None
    return next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None)


@functools.cache
def _parts(file: Path) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return what a file imports, and which settings it reads: to parse all files and walk through them is slow."""
    imported, read = list[str](), set[str]()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            imported += [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
        elif isinstance(node, ast.Import):
            imported += [name.name for name in node.names]
        # To write an expression down again costs most of this.
        elif isinstance(node, ast.Attribute) and node.attr in _NAMES and ast.unparse(node.value).endswith("settings"):
            read.update(_behind(node.attr))
    return tuple(imported), frozenset(read)


def _behind(name: str) -> tuple[str, ...]:
    """Return the settings that decide a property of all settings; a setting itself is one."""
    if name == "plain_host":
        return ("tls_only",)
    if name == "control_tls":
        return ("control_cert", "control_host", "control_proxy")
    return (name,)
