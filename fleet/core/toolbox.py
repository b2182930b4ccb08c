"""A device's tools as the model may see and call them.

Device tool names carry dots and may be long, models accept `[a-zA-Z0-9_-]{1,64}`; both ways without collisions.
Arguments are checked against the tool's schema before anything is sent: a device executes whatever reaches it.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from fleet.core.ports import ToolCall, ToolOffer
from fleet.wire.mcp import ToolSpec

LONGEST_NAME = 64

_TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that may be sent: the device's own name of the tool, and arguments that fit its schema."""

    tool: ToolSpec
    arguments: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call is not sent, in words for the model."""

    reason: str


class Toolbox:
    """The tools of one device under the names that the model knows.

    Args:
        tools: As the device announced them; those meant for people only are left out.
    """

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self._tools: dict[str, ToolSpec] = {}
        for tool in tools:
            if not tool.user_only:
                self._tools[self._free_name(tool.name)] = tool
        self.offers = tuple(ToolOffer(name, tool.description, _parameters(tool)) for name, tool in self._tools.items())

    def prepare(self, call: ToolCall) -> Prepared | Refusal:
        """Return what to send for a call, or why nothing is sent."""
        tool = self._tools.get(call.name)
        if tool is None:
            return Refusal(f"error: there is no tool {call.name!r}")
        try:
            arguments = json.loads(call.arguments or "{}")
        except ValueError:
            return Refusal("error: the arguments are not valid JSON")
        if not isinstance(arguments, dict):
            return Refusal("error: the arguments must be a JSON object")
        return _fit(tool, arguments)

    def _free_name(self, name: str) -> str:
        plain = re.sub(r"[^a-zA-Z0-9_-]", "_", name.removeprefix("self."))
        digest = hashlib.sha256(name.encode()).hexdigest()[:8]
        if len(plain) <= LONGEST_NAME and plain not in self._tools:
            return plain
        return f"{plain[: LONGEST_NAME - 9]}_{digest}"


def _parameters(tool: ToolSpec) -> dict[str, Any]:
    schema = tool.input_schema
    properties = schema.get("properties")
    return {**schema, "type": "object", "properties": properties if isinstance(properties, dict) else {}}


def _fit(tool: ToolSpec, arguments: dict[str, JsonValue]) -> Prepared | Refusal:
    schema = _parameters(tool)
    fitted: dict[str, JsonValue] = {}
    for name, value in arguments.items():
        rule = schema["properties"].get(name)
        if rule is None:
            continue
        checked = _check(name, value, rule if isinstance(rule, dict) else {})
        if isinstance(checked, Refusal):
            return checked
        fitted[name] = checked
    required = schema.get("required")
    missing = [name for name in required if name not in fitted] if isinstance(required, list) else []
    return Refusal(f"error: missing argument {missing[0]!r}") if missing else Prepared(tool, fitted)


def _check(name: str, value: JsonValue, rule: dict[str, Any]) -> JsonValue | Refusal:
    value = _convert(value, rule.get("type"))
    wanted = _TYPES.get(str(rule.get("type")))
    if wanted and (not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted)):
        return Refusal(f"error: argument {name!r} must be of type {rule['type']}")
    if isinstance(rule.get("enum"), list) and value not in rule["enum"]:
        return Refusal(f"error: argument {name!r} must be one of {json.dumps(rule['enum'], ensure_ascii=False)}")
    low, high = rule.get("minimum"), rule.get("maximum")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if isinstance(low, (int, float)) and value < low:
            return Refusal(f"error: argument {name!r} must be at least {low}")
        if isinstance(high, (int, float)) and value > high:
            return Refusal(f"error: argument {name!r} must be at most {high}")
    return value


def _convert(value: JsonValue, kind: object) -> JsonValue:
    """Mend what models often write: `"30"` or `30.0` for an integer, `"true"` for a boolean."""
    if kind in ("integer", "number") and isinstance(value, str) and re.fullmatch(r"-?\d+(?:\.\d+)?", value.strip()):
        value = float(value)
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind == "boolean" and isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    return value
