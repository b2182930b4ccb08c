"""Toolboxes of devices, made once for all turns: devices with one firmware share their tools."""

from typing import Final

from fleet.core.tool_gate import ToolGate
from fleet.core.tool_policy import ToolPolicy, ToolSource
from fleet.core.toolbox import Toolbox
from fleet.core.user_tools import is_for_users
from fleet.wire.mcp import ToolSpec

MOST_KEPT: Final = 64
LARGEST_KEPT: Final = 8_000
"""Characters of the offers of a toolbox that is kept; with their objects all take up to 10 MB."""
LARGEST_LIST: Final = 16_384
"""Bytes of JSON of the tools of a toolbox that is kept, also of those that are not offered. All turns share the objects
of such a list; those of a longer one are made for each turn (`fleet.adapters.redis.devices.tools`)."""

_kept: dict[tuple[int, ToolSource, ToolPolicy], tuple[tuple[ToolSpec, ...], Toolbox]] = {}
"""With the tools, by their identity: so long as they are here, no others have that."""


def device_toolbox(tools: tuple[ToolSpec, ...], source: ToolSource, gate: ToolGate) -> Toolbox:
    """Return the toolbox of a device whose turn has this gate.

    Args:
        tools: As the device announced them. Nobody changes them.
        source: Whose they are.
        gate: Tools that it hides are not offered.
    """
    key = (id(tools), source, gate.policy)
    kept = _kept.get(key)
    if kept is not None:
        return kept[1]
    offered = [tool for tool in tools if not is_for_users(tool, source)]
    box = Toolbox(offered, hides=lambda name: gate.hides(name, source))
    if box.size <= LARGEST_KEPT and sum(len(tool.model_dump_json()) for tool in tools) <= LARGEST_LIST:
        _kept[key] = tools, box
        if len(_kept) > MOST_KEPT:
            del _kept[next(iter(_kept))]
    return box
