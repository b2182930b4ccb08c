"""The contents of MCP answers (2024-11-05) as devices really give them; a damaged part is dropped, not the whole."""

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

LARGEST_RESULT = 16_000
"""Characters of a tool's result that are passed on to the model."""


class ToolSpec(BaseModel):
    """A tool as its device announces it; `input_schema` is a JSON Schema of type object."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)
    name: Annotated[str, Field(min_length=1, max_length=256)]
    description: str = ""
    input_schema: dict[str, Any] = Field(default_factory=dict, alias="inputSchema")
    user_only: bool = False
    """Meant for people, not for the model: never offered to it."""


@dataclass(frozen=True, slots=True)
class ToolsPage:
    """One page of a tool list; `cursor` is empty on the last one."""

    tools: tuple[ToolSpec, ...]
    cursor: str
    damaged: int
    """How many entries could not be read."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered: its text, and how many images it held besides."""

    text: str
    failed: bool
    images: int = 0


class _Annotations(BaseModel):
    audience: list[str] = Field(default_factory=list)


class _Tool(ToolSpec):
    annotations: _Annotations = _Annotations()


class _Page(BaseModel):
    tools: list[JsonValue] = Field(default_factory=list)
    nextCursor: str | None = None


class _ServerInfo(BaseModel):
    name: str = ""
    version: str = ""


class _Initialized(BaseModel):
    serverInfo: _ServerInfo = _ServerInfo()


class _Content(BaseModel):
    type: str = "text"
    text: str | None = None


def _content_list(value: object) -> object:
    return value if isinstance(value, list) else []


class _CallResult(BaseModel):
    content: Annotated[list[JsonValue], BeforeValidator(_content_list)] = Field(default_factory=list)
    isError: bool = False


def parse_server(result: JsonValue) -> tuple[str, str]:
    """Return the board's name and firmware version from the answer to `initialize`; empty where it does not say."""
    try:
        info = _Initialized.model_validate(result).serverInfo
    except ValidationError:
        return "", ""
    return info.name, info.version


def parse_page(result: JsonValue) -> ToolsPage | None:
    """Return one page of tools, or None when the answer is no tool list at all."""
    try:
        page = _Page.model_validate(result)
    except ValidationError:
        return None
    tools = [tool for entry in page.tools if (tool := _tool(entry)) is not None]
    return ToolsPage(tuple(tools), page.nextCursor or "", len(page.tools) - len(tools))


def _tool(entry: JsonValue) -> ToolSpec | None:
    try:
        tool = _Tool.model_validate(entry)
    except ValidationError:
        return None
    audience = tool.annotations.audience
    return ToolSpec(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        user_only="user" in audience and "assistant" not in audience,
    )


def parse_result(result: JsonValue) -> ToolResult:
    """Return the text of a tool's answer; whatever is not in the usual shape is passed on as JSON."""
    try:
        call = _CallResult.model_validate(result)
    except ValidationError:
        return ToolResult(_clip(json.dumps(result, ensure_ascii=False)), failed=False)
    kinds: list[Literal["image", "text"]] = []
    texts: list[str] = []
    for entry in call.content:
        part = _part(entry)
        kinds.append(part[0])
        texts.append(part[1])
    text = "\n".join(text for text in texts if text)
    if not call.content and isinstance(result, dict) and "content" not in result:
        text = json.dumps(result, ensure_ascii=False)
    return ToolResult(_clip(text), failed=call.isError, images=kinds.count("image"))


def _part(entry: JsonValue) -> tuple[Literal["image", "text"], str]:
    try:
        content = _Content.model_validate(entry)
    except ValidationError:
        return "text", json.dumps(entry, ensure_ascii=False)
    if content.type == "image":
        return "image", "[image]"
    return "text", content.text or ""


def _clip(text: str) -> str:
    return text if len(text) <= LARGEST_RESULT else text[:LARGEST_RESULT] + " […]"
