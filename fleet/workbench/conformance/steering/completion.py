"""The calls of the scripted chat model, under the names that the server offers."""

import json
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from fleet.workbench.conformance.steering.script import Call, letters


def write_call(call: Call, offered: Sequence[str]) -> tuple[str, str]:
    """Return a call as the model writes it: under the name that was offered for the tool, or its own."""
    name, arguments = call
    written = arguments if isinstance(arguments, str) else json.dumps(dict(arguments), ensure_ascii=False)
    return find_tool(name, offered), written


def find_tool(name: str, offered: Sequence[str]) -> str:
    """Return which of the offered tools is meant: `self_led_on` or `device__self_led_on` for `self.led.on`.

    The name itself where none is.
    """
    wanted = letters(name)
    same = [tool for tool in offered if letters(tool) == wanted]
    longer = [tool for tool in offered if letters(tool).endswith(wanted)]
    return next(iter((*same, *longer)), name)


def tool_names(tools: Sequence[Mapping[str, JsonValue]]) -> list[str]:
    """Return the names of offered tools."""
    functions = [tool.get("function") for tool in tools]
    return [str(function["name"]) for function in functions if isinstance(function, dict) and "name" in function]
