"""The file that lists MCP servers, in the form that other MCP clients use too.

`{"mcpServers": {NAME: {"command": …, "args": […], "env": {…}, "cwd": …} | {"url": …, "headers": {…}}}}`. A server with
`"disabled": true` is left out. Unknown fields of an entry are ignored.
"""

import json
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, ValidationError, field_validator

from fleet.ground.errors import ConfigError

MOST = 32
"""Servers in a file."""
_NAME = r"[^\s/]{1,32}"


class StdioTransport(BaseModel):
    """A server that runs as a child process, with messages on its standard input and output."""

    command: Annotated[str, Field(min_length=1)]
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    """Environment variables, in addition to the few that every program needs."""
    cwd: Path | None = None


class HttpTransport(BaseModel):
    """A server with the streamable HTTP transport."""

    url: str
    headers: dict[str, str] = Field(default_factory=dict)
    type: str = "http"

    @field_validator("url")
    @classmethod
    def _is_http(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must be http://… or https://…")
        return value

    @field_validator("type")
    @classmethod
    def _is_streamable(cls, value: str) -> str:
        if value.lower() == "sse":
            raise ValueError("the transport `sse` is not supported; give the server's streamable HTTP address")
        return value


Server = StdioTransport | HttpTransport


class _File(BaseModel):
    mcpServers: Annotated[dict[Annotated[str, Field(pattern=f"^{_NAME}$")], dict[str, Any]], Field(max_length=MOST)]


def read_servers(path: Path | None) -> dict[str, Server]:
    """Return the servers in a file; none without a file.

    Raises:
        ConfigError: The file cannot be read, or an entry is invalid. The message names the entry, but no value, since
            values may be secret.
    """
    if path is None:
        return {}
    try:
        entries = _File.model_validate(json.loads(path.read_text(encoding="utf-8"))).mcpServers
    except ValidationError as error:
        raise ConfigError(f"FLEET_MCP_SERVERS: {path}: {_explain(error)}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"FLEET_MCP_SERVERS: {path}: {error}") from None
    wanted = {name: entry for name, entry in entries.items() if entry.get("disabled") is not True}
    return {name: _read(path, name, entry) for name, entry in wanted.items()}


def _read(path: Path, name: str, entry: dict[str, Any]) -> Server:
    if ("command" in entry) == ("url" in entry):
        raise ConfigError(f"FLEET_MCP_SERVERS: {path}: {name} must have either `command` or `url`")
    kind: type[StdioTransport] | type[HttpTransport] = StdioTransport if "command" in entry else HttpTransport
    try:
        return kind.model_validate(entry)
    except ValidationError as error:
        raise ConfigError(f"FLEET_MCP_SERVERS: {path}: {name}: {_explain(error)}") from None


def _explain(error: ValidationError) -> str:
    fault: Any = error.errors(include_input=False)[0]
    return f"{'.'.join(map(str, fault['loc']))}: {fault['msg'].removeprefix('Value error, ')}"
