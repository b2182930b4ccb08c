"""The contents of devices' MCP answers (2024-11-05); a damaged part is dropped, the rest is kept."""

import json
import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from fleet.wire.json_text import dump, has_levels, json_length
from fleet.wire.mcp_content import describe

LARGEST_RESULT = 8_000
"""Characters of a tool's result that are passed on to the model."""
LARGEST_SCHEMA = 8_000
"""Characters of a tool's schema as compact JSON; in firmware a whole page of tools is not longer."""
LARGEST_PAGE = 8_000
"""Bytes of a page of tools as compact JSON: firmware begins another page before it (contract section 6, paging)."""
LARGEST_LIST = 64 * 1024
"""Bytes of all tools of a device as JSON: eight full pages of firmware; real devices have one or two."""
_MOST_ENTRIES = LARGEST_PAGE // 3
"""A page cannot hold more entries, even if all are empty objects."""
DEEPEST_SCHEMA = 12
LONGEST_DESCRIPTION = 2_000
LONGEST_NAME = 256

_NO_REASON = "the tool failed and gave no reason"
_ENCODED = re.compile(
    r"(?<![A-Za-z0-9+/_-])(?:"
    r"[A-Za-z0-9+/_-]{256,}|(?:[A-Za-z0-9+/]{60,76}(?:\r?\n|(?:\\r)?\\n)){4,}[A-Za-z0-9+/]*"
    r")={0,2}"
)
"""Binary data in base64, on one line or wrapped as in e-mails, perhaps inside JSON."""


class ToolSpec(BaseModel):
    """A tool as its device announces it; `input_schema` is a JSON Schema of type object."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)
    name: Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
    description: str = ""
    input_schema: dict[str, Any] = Field(default_factory=dict, alias="inputSchema")
    user_only: bool = False
    """Meant for people, not for the model: never offered to it."""
    control: bool = False
    """The call counts as done when it is sent; its answer is not awaited."""


@dataclass(frozen=True, slots=True)
class ToolsPage:
    """One page of a tool list; `cursor` is empty on the last one."""

    tools: tuple[ToolSpec, ...]
    cursor: str
    damaged: int
    """How many entries could not be read."""
    too_long: bool = False
    """Whether the page is longer than `LARGEST_PAGE`; the rest was not read."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool's answer as text."""

    text: str
    failed: bool


def _list(value: object) -> object:
    return value if isinstance(value, list) else []


def _text(value: object) -> object:
    return value if isinstance(value, str) else ""


def _members(value: object) -> object:
    return value if isinstance(value, dict) else {}


def _flag(value: object) -> object:
    return value is True or str(value).lower() in ("true", "1")


_Text = Annotated[str, BeforeValidator(_text)]


class _Annotations(BaseModel):
    audience: Annotated[list[JsonValue], BeforeValidator(_list)] = Field(default_factory=list)


class _Tool(BaseModel):
    name: Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
    description: _Text = ""
    inputSchema: Annotated[dict[str, Any], BeforeValidator(_members)] = Field(default_factory=dict)
    annotations: Annotated[_Annotations, BeforeValidator(_members)] = Field(default_factory=_Annotations)


class _Page(BaseModel):
    tools: list[Any] = Field(default_factory=list)


class _ServerInfo(BaseModel):
    name: _Text = ""
    version: _Text = ""


class _Initialized(BaseModel):
    serverInfo: _ServerInfo = Field(default_factory=_ServerInfo)


class _CallResult(BaseModel):
    content: Annotated[list[JsonValue], BeforeValidator(_list)] = Field(default_factory=list)
    isError: Annotated[bool, BeforeValidator(_flag)] = False


def parse_server(result: JsonValue) -> tuple[str, str]:
    """Return the board's name and firmware version from the answer to `initialize`; empty if missing."""
    try:
        info = _Initialized.model_validate(result).serverInfo
    except ValidationError:
        return "", ""
    return info.name[:LONGEST_NAME], info.version[:LONGEST_NAME]


def next_cursor(result: JsonValue) -> str:
    """Return the cursor of the page behind this one, which is a tool list; empty on the last page."""
    cursor = result.get("nextCursor") if isinstance(result, dict) else None
    # A cursor is a tool's name; a longer one would not fit into the request for the next page.
    return cursor if isinstance(cursor, str) and len(cursor) <= LONGEST_NAME else ""


def parse_page(result: JsonValue, size: int = LARGEST_PAGE + 1) -> ToolsPage | None:
    """Return one page of tools, or None when the answer is no tool list at all.

    Args:
        result: The answer.
        size: Its bytes as compact JSON, if they are known: no entry of a page that fits is too long.
    """
    try:
        page = _Page.model_validate(result)
    except ValidationError:
        return None
    tools: list[ToolSpec] = []
    fits, room, damaged = size <= LARGEST_PAGE, LARGEST_PAGE, 0
    for entry in page.tools[:_MOST_ENTRIES]:
        # Thousands of entries may be invalid: the library's errors would take a second.
        tool = _tool(entry, fits=fits) if _is_named(entry) else None
        if tool and not fits:
            # Of a long description only the beginning is kept.
            room -= min(len(dump(entry)), LARGEST_PAGE)
        if room < 0:
            break
        if tool is None:
            damaged += 1
        else:
            tools.append(tool)
    return ToolsPage(tuple(tools), next_cursor(result), damaged, room < 0 or len(page.tools) > _MOST_ENTRIES)


def _is_named(entry: JsonValue) -> bool:
    name = entry.get("name") if isinstance(entry, dict) else None
    return isinstance(name, str) and 0 < len(name) <= LONGEST_NAME


def _tool(entry: JsonValue, *, fits: bool) -> ToolSpec | None:
    try:
        tool = _Tool.model_validate(entry)
    except ValidationError:
        return None
    schema = tool.inputSchema
    if not (has_levels(schema, DEEPEST_SCHEMA) if fits else is_acceptable(schema)):
        return None
    audience = tool.annotations.audience
    return ToolSpec(
        name=tool.name,
        description=tool.description[:LONGEST_DESCRIPTION],
        input_schema=schema,
        user_only="user" in audience and "assistant" not in audience,
    )


def is_acceptable(schema: dict[str, Any]) -> bool:
    """Whether a tool's schema is small enough."""
    return has_levels(schema, DEEPEST_SCHEMA) and json_length(schema) <= LARGEST_SCHEMA


def parse_result(result: JsonValue) -> ToolResult:
    """Return a tool's answer as text; an answer of unknown shape is returned as JSON."""
    try:
        call = _CallResult.model_validate(result)
    except ValidationError:
        return ToolResult(clip(json.dumps(result, ensure_ascii=False)), failed=False)
    text = "\n".join(part for entry in call.content if (part := describe(entry)))
    if not call.content and isinstance(result, dict) and not isinstance(result.get("content"), list):
        text = json.dumps(result, ensure_ascii=False)
    if call.isError and not text.strip():
        text = _NO_REASON
    return ToolResult(clip(text), failed=call.isError)


def clip(text: str) -> str:
    """Return a text for the model: without encoded data, and bounded in length."""
    text = _ENCODED.sub(lambda found: f"[{-(-len(found[0]) * 3 // 4096)} KB of data]", text)
    if len(text) <= LARGEST_RESULT:
        return text
    return f"{text[:LARGEST_RESULT]} [… cut, {len(text) - LARGEST_RESULT} more characters]"
