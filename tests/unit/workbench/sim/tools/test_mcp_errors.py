"""The errors of firmware 2.5, word by word (main/mcp_server.cc and mcp_server.h at 77500b8)."""

import json
from typing import Any

import pytest

from fleet.workbench.sim.profiles.profile import PROFILES
from fleet.workbench.sim.tools.board import Board
from fleet.workbench.sim.tools.mcp_server import McpServer, PendingCall
from fleet.workbench.sim.tools.tool import Arguments, Outcome, Parameter, Tool

VOLUME, RATE = "self.audio_speaker.set_volume", "self.rate"


async def _nothing(_: Board, __: Arguments) -> Outcome:
    return True


TOOLS = (
    Tool(VOLUME, "", _nothing, (Parameter("volume", "integer", minimum=0, maximum=100),)),
    Tool(RATE, "", _nothing, (Parameter("quality", "integer", 80, 1, 100),)),
)


def server() -> McpServer:
    return McpServer(PROFILES["P9"], TOOLS, Board())


def ask(method: str, params: object = None) -> str | PendingCall | None:
    return server().receive(
        {"jsonrpc": "2.0", "id": 7, "method": method, **({} if params is None else {"params": params})}
    )


@pytest.mark.requirement("XZ-045")
@pytest.mark.parametrize(
    ("method", "params", "code", "message"),
    [
        ("tools/fly", {}, -32601, "Method not implemented: tools/fly"),
        ("tools/call", None, -32602, "Missing params"),
        ("tools/call", {}, -32602, "Missing tool name"),
        ("tools/call", {"name": VOLUME, "arguments": None}, -32602, "Invalid arguments: expected object"),
        ("tools/call", {"name": "self.nothing"}, -32602, "Unknown tool: self.nothing"),
        ("tools/call", {"name": VOLUME}, -32602, "Missing required argument: volume"),
        ("tools/call", {"name": VOLUME, "arguments": {"volume": "9"}}, -32602, "Invalid type for argument: volume"),
        ("tools/call", {"name": RATE, "arguments": {"quality": None}}, -32602, "Invalid type for argument: quality"),
        ("tools/call", {"name": VOLUME, "arguments": {"volume": -1}}, -32602, "Value is below minimum allowed: 0"),
        ("tools/call", {"name": VOLUME, "arguments": {"volume": 101}}, -32602, "Value exceeds maximum allowed: 100"),
        (
            "tools/list",
            {"cursor": "nowhere"},
            -32603,
            "Failed to add tool  because of payload size limit",
        ),
    ],
)
def test_every_refusal_has_firmwares_code_and_text(method: str, params: Any, code: int, message: str) -> None:
    reply = ask(method, params)
    assert isinstance(reply, str)
    assert json.loads(reply) == {"jsonrpc": "2.0", "id": 7, "error": {"code": code, "message": message}}


@pytest.mark.requirement("XZ-046")
@pytest.mark.parametrize(("arguments", "used"), [({}, 80), ({"quality": 12.9}, 12), ({"QUALITY": 5}, 5)])
def test_a_default_stands_in_for_what_is_missing_only(arguments: dict[str, object], used: int) -> None:
    call = ask("tools/call", {"name": RATE, "arguments": arguments})
    assert isinstance(call, PendingCall)
    assert call.arguments == {"quality": used}


@pytest.mark.requirement("XZ-045")
def test_a_failed_tool_has_the_code_of_an_internal_error_and_its_text_is_still_not_escaped() -> None:
    said = server().fail_call(7, 'no "lamp"')
    assert said == '{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"no "lamp""}}'
