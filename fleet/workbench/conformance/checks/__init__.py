"""The checks, a file or a few for each group; ids and order are those of section 9 of the device contract."""

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules

from fleet.ground.errors import ConfigError
from fleet.workbench.conformance.catalogue import Check, Group

_ORDER = "OAMHUDSCV"


def _groups() -> tuple[Group, ...]:
    """Import every file of this package, which adds its checks to its group, and return the groups in their order."""
    files = [import_module(f"{__name__}.{file.name}") for file in iter_modules(__path__)]
    groups: dict[str, Group] = {file.GROUP.letter: file.GROUP for file in files}
    return tuple(groups[letter] for letter in _ORDER)


GROUPS = _groups()


def select(wanted: Iterable[str] = ()) -> list[Check]:
    """Return the checks whose id or letter is named; all of them when nothing is.

    Raises:
        ConfigError: Nothing has such a name.
    """
    every = [check for group in GROUPS for check in sorted(group.checks, key=lambda check: check.number)]
    names = {name.strip().upper() for name in wanted}
    known = {check.id for check in every} | {group.letter for group in GROUPS}
    if unknown := sorted(names - known):
        raise ConfigError(f"no check or group {', '.join(unknown)}; groups are {', '.join(g.letter for g in GROUPS)}")
    return [check for check in every if not names or check.id in names or check.letter in names]
