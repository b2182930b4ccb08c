"""The tools of stock firmware that are for users only: operators call them, the model never sees them."""

import tomllib
from pathlib import Path
from typing import Any, Final

from fleet.core.tool_policy import ToolSource
from fleet.wire.mcp import ToolSpec

_KNOWN: Final[dict[str, dict[str, Any]]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)


def is_for_users(tool: ToolSpec, source: ToolSource) -> bool:
    """Whether a tool is for users only: its device says so, or it has the name of such a tool of stock firmware.

    Other firmware may list those without saying so.
    """
    return tool.user_only or (source == "device" and tool.name in _KNOWN)


def user_tools() -> list[ToolSpec]:
    """Return all tools for users only."""
    return [tool for name in _KNOWN if (tool := user_tool(name))]


def user_tool(name: str) -> ToolSpec | None:
    """Return a tool for users only by its name; None if firmware has none of this name."""
    known = _KNOWN.get(name)
    if known is None:
        return None
    properties = {key: rule for key, rule in known.items() if key not in ("about", "needs")}
    schema = {"type": "object", "properties": properties, "required": known.get("needs", [])}
    return ToolSpec(name=name, description=known["about"], input_schema=schema, user_only=True)
