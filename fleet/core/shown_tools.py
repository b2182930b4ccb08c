"""What models see of tools, made once for all turns: tools rarely change, and devices with one firmware share them."""

import json
from dataclasses import dataclass
from typing import Any, Final

from fleet.core.schemas.cleaning import clean
from fleet.core.schemas.shown import shown
from fleet.wire.mcp import ToolSpec

LONGEST_DESCRIPTION = 1_000
MOST_KEPT: Final = 512
LARGEST_KEPT: Final = 1_000
"""Characters of the description and of the schema of a tool that is kept; as objects, schemas take twenty times as much
memory, what is made of them too: 20 MB for all."""


@dataclass(frozen=True, slots=True)
class ShownTool:
    """A tool for models. Nobody changes its parameters: many turns share them."""

    description: str
    parameters: dict[str, Any]
    size: int
    """Characters of both."""


_Key = tuple[int, str, str]

_kept: dict[_Key, tuple[dict[str, Any], ShownTool]] = {}
"""With the schema, by its identity: so long as it is here, no other one has that."""


def show(tool: ToolSpec) -> ShownTool:
    """Return a tool as models see it."""
    key = (id(tool.input_schema), tool.name, tool.description)
    kept = _kept.get(key)
    return kept[1] if kept is not None else _show_new(key, tool)


def _show_new(key: _Key, tool: ToolSpec) -> ShownTool:
    parameters = shown(clean(tool.input_schema))
    description = (tool.description.strip() or tool.name)[:LONGEST_DESCRIPTION]
    description = description.encode("utf-8", "replace").decode()
    new = ShownTool(description, parameters, len(description) + len(json.dumps(parameters)))
    if len(tool.description) <= LARGEST_KEPT and len(json.dumps(tool.input_schema)) <= LARGEST_KEPT:
        _kept[key] = tool.input_schema, new
        if len(_kept) > MOST_KEPT:
            del _kept[next(iter(_kept))]
    return new
