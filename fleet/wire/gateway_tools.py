"""The tools that a client of the LLM Gateway API registers (its document, sections 4.6 and 11.5).

Each tool is read on its own: an invalid one becomes a `BadTool`, and the valid ones are registered.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue
from pydantic_core import from_json

from fleet.wire.json_text import has_levels, json_length, pack
from fleet.wire.mcp import ToolSpec

LONGEST_NAME = 64
LONGEST_DESCRIPTION = 2_000
"""Characters of a description that are kept."""
DEEPEST_SCHEMA = 12
LARGEST_TOOL = 16_000
"""Characters of a tool as compact JSON: twice the size of a whole page of a device's tools."""
MOST_LEVELS = 32
"""Levels of a tool's JSON. A schema of `DEEPEST_SCHEMA` levels has fewer."""
LARGEST_TOOLS = 128 * 1024
"""Characters of all tools of a connection as JSON; models could not be offered more."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*")
_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_COUNTS = frozenset({"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"})
_TEXTS = frozenset({"title", "description", "format", "pattern", "$ref", "$comment"})
_GROUPS = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_INNER = frozenset({"items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else"})
_BRANCHES = frozenset({"anyOf", "oneOf", "allOf"})

TOO_MUCH = f"Too much, all tools of a connection may have {LARGEST_TOOLS} characters of JSON"
"""The reason for a tool that is small enough itself, but exceeds the limit of its connection."""

Fault = Literal["TOOL_REGISTRATION_FAILED", "INVALID_TOOL_PARAMETERS"]


@dataclass(frozen=True, slots=True)
class BadTool:
    """A tool that cannot be registered; `name` is the client's text, empty if it is not a text."""

    name: str
    code: Fault
    reason: str


def pack_tools(entries: Sequence[JsonValue]) -> tuple[str | BadTool, ...]:
    """Return each entry of one `register_tools` as compact JSON, or as `BadTool` if it is too large.

    A tool may wait before it is read (`unpack_tool`). It waits as text, because parsed objects take many times the
    memory. Entries beyond `LARGEST_TOOLS` are refused here, since no connection may register so much.
    """
    room = LARGEST_TOOLS
    packed: list[str | BadTool] = []
    for entry in entries:
        text = pack(entry)
        room -= min(len(text), LARGEST_TOOL)
        if room < 0:
            packed.append(_bad(entry, TOO_MUCH))
        else:
            packed.append(_refuse_whole(entry) if len(text) > LARGEST_TOOL else text)
    return tuple(packed)


def unpack_tool(packed: str) -> ToolSpec | BadTool:
    """Return the tool that an entry defines, or its fault; never raises."""
    return read_tool(from_json(packed), len(packed))


def read_tool(entry: JsonValue, size: int | None = None) -> ToolSpec | BadTool:
    """Return the tool that an entry of `register_tools` defines, or its fault; never raises.

    Args:
        entry: Parsed JSON of any type.
        size: Its `json_length`, if the caller knows it.
    """
    # The size is checked first: it bounds the cost of all other checks.
    if not isinstance(entry, dict) or (json_length(entry) if size is None else size) > LARGEST_TOOL:
        return _refuse_whole(entry)
    if not has_levels(entry, MOST_LEVELS):
        return _bad(entry, f"Tool is nested too deeply, at most {MOST_LEVELS} levels of JSON")
    name, description, parameters = entry.get("name"), entry.get("description"), entry.get("parameters")
    if not isinstance(name, str):
        return BadTool("", "TOOL_REGISTRATION_FAILED", "Tool name is missing")
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        return BadTool(name[:LONGEST_NAME], "TOOL_REGISTRATION_FAILED", "Invalid tool name")
    if not isinstance(description, str):
        return BadTool(name, "TOOL_REGISTRATION_FAILED", "Tool description is missing")
    if not isinstance(parameters, dict):
        return BadTool(name, "INVALID_TOOL_PARAMETERS", "Tool parameters must be a JSON Schema object")
    if parameters.get("type", "object") != "object":
        return BadTool(name, "INVALID_TOOL_PARAMETERS", "Tool parameters must have the type object")
    if fault := find_fault(parameters):
        return BadTool(name, "INVALID_TOOL_PARAMETERS", f"Tool parameters are no JSON Schema: {fault}")
    return ToolSpec(name=name, description=description[:LONGEST_DESCRIPTION], input_schema=parameters)


def _refuse_whole(entry: JsonValue) -> BadTool:
    if not isinstance(entry, dict):
        return BadTool("", "TOOL_REGISTRATION_FAILED", "A tool must be an object")
    return _bad(entry, f"Tool is too large, at most {LARGEST_TOOL} characters of JSON")


def _bad(entry: JsonValue, reason: str) -> BadTool:
    name = entry.get("name") if isinstance(entry, dict) else ""
    return BadTool(name[:LONGEST_NAME] if isinstance(name, str) else "", "TOOL_REGISTRATION_FAILED", reason)


def find_fault(schema: JsonValue, place: str = "parameters", depth: int = 0) -> str:
    """Return the place and reason why a value is not a JSON Schema; empty if it is one.

    Only the keywords of validation are checked. JSON Schema allows unknown keywords.
    """
    if isinstance(schema, bool):
        return ""
    if not isinstance(schema, dict):
        return f"{place} must be an object"
    if depth > DEEPEST_SCHEMA:
        return f"{place} is nested too deeply"
    return _find_plain_fault(schema, place) or _find_inner_fault(schema, place, depth)


def _find_plain_fault(schema: dict[str, JsonValue], place: str) -> str:
    if not schema:
        return ""
    kind = schema.get("type")
    if "type" in schema and not _is_type(kind):
        return f"{place}.type must be one of {', '.join(sorted(_TYPES))}"
    if "enum" in schema and not (isinstance(schema["enum"], list) and schema["enum"]):
        return f"{place}.enum must be a list with members"
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        return f"{place}.required must be a list of names"
    for word, value in schema.items():
        if word in _NUMBERS and not _is_number(value):
            return f"{place}.{word} must be a number"
        if word in _COUNTS and not _is_count(value):
            return f"{place}.{word} must be a whole number from 0"
        if word in _TEXTS and not isinstance(value, str):
            return f"{place}.{word} must be a text"
    return ""


def _find_inner_fault(schema: dict[str, JsonValue], place: str, depth: int) -> str:
    # The loop goes over the schema's own keywords, not over all known ones: most schemas have one or two.
    for word, rule in schema.items():
        where = f"{place}.{word}"
        inner: Iterable[tuple[str, JsonValue]] = ()
        if word in _GROUPS:
            if not isinstance(rule, dict):
                return f"{where} must be an object"
            inner = ((f"{where}.{name[:LONGEST_NAME]}", one) for name, one in rule.items())
        elif word in _BRANCHES and not isinstance(rule, list):
            return f"{where} must be a list"
        elif isinstance(rule, list) and (word in _BRANCHES or word == "items"):
            inner = ((where, one) for one in rule)
        elif word in _INNER:
            inner = ((where, rule),)
        for at, one in inner:
            if fault := find_fault(one, at, depth + 1):
                return fault
    return ""


def _is_type(kind: JsonValue) -> bool:
    # The document allows several types in one text, "string|number" (section 4.6).
    names = kind if isinstance(kind, list) else kind.split("|") if isinstance(kind, str) else [kind]
    return bool(names) and all(isinstance(name, str) and name in _TYPES for name in names)


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float | bool)  # draft 4: exclusiveMinimum and exclusiveMaximum are truth values


def _is_count(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and value == int(value)
