"""The file that names MCP servers, in the form that other clients of MCP use too.

`{"mcpServers": {NAME: {"command": …, "args": […], "env": {…}, "cwd": …} | {"url": …, "headers": {…}}}}`; `"disabled":
true` leaves a server out, and what else other clients write into an entry is not looked at.
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


class Program(BaseModel):
    """A server that is started as a child process, and spoken to on its standard input and output."""

    command: Annotated[str, Field(min_length=1)]
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    """Its environment, beside the few variables that every program needs."""
    cwd: Path | None = None


class Address(BaseModel):
    """A server that is reached over streamable HTTP."""

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


Server = Program | Address


class _File(BaseModel):
    mcpServers: Annotated[dict[Annotated[str, Field(pattern=f"^{_NAME}$")], dict[str, Any]], Field(max_length=MOST)]


def read_servers(path: Path | None) -> dict[str, Server]:
    """Return the servers that a file names, none without a file.

    Raises:
        ConfigError: The file cannot be read, or an entry is wrong; the message says which, and repeats no value.
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
    kind: type[Program] | type[Address] = Program if "command" in entry else Address
    try:
        return kind.model_validate(entry)
    except ValidationError as error:
        raise ConfigError(f"FLEET_MCP_SERVERS: {path}: {name}: {_explain(error)}") from None


def _explain(error: ValidationError) -> str:
    fault: Any = error.errors(include_input=False)[0]
    return f"{'.'.join(map(str, fault['loc']))}: {fault['msg'].removeprefix('Value error, ')}"
