import json
from pathlib import Path
from typing import Any

import pytest

from fleet.adapters.tools.mcp_config import HttpTransport, StdioTransport, read_servers
from fleet.ground.errors import ConfigError


def write(folder: Path, document: Any) -> Path:
    path = folder / "servers.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_without_a_file_there_are_no_servers() -> None:
    assert read_servers(None) == {}


def test_programs_and_addresses_are_read_in_the_usual_form(tmp_path: Path) -> None:
    entries = {
        "files": {"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}, "autoApprove": ["read"]},
        "天气": {"type": "streamable-http", "url": "https://mcp.example/mcp", "headers": {"Authorization": "Bearer t"}},
        "later": {"command": "x", "disabled": True},
    }
    servers = read_servers(write(tmp_path, {"mcpServers": entries}))
    assert servers == {
        "files": StdioTransport(command="npx", args=["-y", "x"], env={"A": "b"}),
        "天气": HttpTransport(
            url="https://mcp.example/mcp", headers={"Authorization": "Bearer t"}, type="streamable-http"
        ),
    }


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ("{", "line 1"),
        ([], "dictionary"),
        ({}, "mcpServers"),
        ({"mcpServers": {"a": {}}}, "a must have either"),
        ({"mcpServers": {"a": {"command": "x", "url": "http://x"}}}, "a must have either"),
        ({"mcpServers": {"a": {"command": ""}}}, "a: command"),
        ({"mcpServers": {"a": {"command": "x", "args": "y"}}}, "a: args"),
        ({"mcpServers": {"a": {"url": "ftp://x"}}}, "a: url"),
        ({"mcpServers": {"a": {"url": "http://x/sse", "type": "sse"}}}, "streamable HTTP"),
        ({"mcpServers": {"a/b": {"command": "x"}}}, "a/b"),
        ({"mcpServers": {str(number): {"command": "x"} for number in range(40)}}, "at most 32"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(tmp_path: Path, document: Any, told: str) -> None:
    with pytest.raises(ConfigError, match="FLEET_MCP_SERVERS") as error:
        read_servers(write(tmp_path, document))
    assert told in str(error.value)


def test_a_message_repeats_no_secret(tmp_path: Path) -> None:
    entries = {"a": {"command": "x", "env": {"TOKEN": ["hush"]}}, "b": {"url": "x", "headers": {"K": ["hush"]}}}
    with pytest.raises(ConfigError) as error:
        read_servers(write(tmp_path, {"mcpServers": entries}))
    assert "hush" not in str(error.value)


def test_a_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_servers(tmp_path / "none.json")
