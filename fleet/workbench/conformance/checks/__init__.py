"""The checks, a file or a few for each group; ids and order are those of section 9 of the device contract."""

from collections.abc import Iterable

from fleet.ground.errors import ConfigError
from fleet.workbench.conformance.catalogue import Check, Group
from fleet.workbench.conformance.checks import (
    activation,
    bootstrap,
    bootstrap_storm,
    dialogue,
    dialogue_ends,
    dialogue_faults,
    dialogue_press,
    dialogue_typed,
    downlink,
    downlink_lead,
    firmware,
    hello,
    hello_sessions,
    mcp,
    mcp_calls,
    mcp_errors,
    mcp_late,
    mcp_waits,
    mqtt,
    mqtt_loss,
    mqtt_storm,
    uplink,
    uplink_flow,
    uplink_rough,
    vision,
)

_FILES = (
    bootstrap,
    firmware,
    bootstrap_storm,
    activation,
    mqtt,
    mqtt_loss,
    mqtt_storm,
    hello,
    hello_sessions,
    uplink,
    uplink_flow,
    uplink_rough,
    downlink,
    downlink_lead,
    dialogue,
    dialogue_ends,
    dialogue_faults,
    dialogue_press,
    dialogue_typed,
    mcp,
    mcp_calls,
    mcp_errors,
    mcp_late,
    mcp_waits,
    vision,
)

GROUPS: tuple[Group, ...] = tuple({file.GROUP.letter: file.GROUP for file in _FILES}.values())


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
