import json
from typing import Any

import pytest

from fleet.workbench.sim.profiles.profile import PROFILES
from fleet.workbench.sim.tools.board import Board
from fleet.workbench.sim.tools.board_tools import tools_of
from fleet.workbench.sim.tools.mcp_server import McpServer, PendingCall, answer, error
from fleet.workbench.sim.tools.tool import Arguments, Outcome, Parameter, Restart, Tool

P1 = PROFILES["P1"]


async def _nothing(_: Board, __: Arguments) -> Outcome:
    return True


def _server(tools: tuple[Tool, ...] | None = None) -> McpServer:
    return McpServer(P1, tools_of(P1) if tools is None else tools, Board())


def _request(method: str, number: object = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _answer(server: McpServer, request: dict[str, Any]) -> dict[str, Any]:
    reply = server.receive(request)
    assert isinstance(reply, str)
    return json.loads(reply)


def _fault(server: McpServer, request: dict[str, Any]) -> str:
    return _answer(server, request)["error"]["message"]


def test_initialize_names_board_and_firmware_and_keeps_the_camera_address() -> None:
    server = _server()
    vision = {"url": "http://server/vision", "token": "t"}
    result = _answer(server, _request("initialize", capabilities={"vision": vision}))["result"]
    assert result["serverInfo"] == {"name": P1.board, "version": "2.4.2"}
    assert result["protocolVersion"] == "2024-11-05"
    assert (server.board.vision_url, server.board.vision_token) == ("http://server/vision", "t")


@pytest.mark.parametrize(
    "request_",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "one", "method": "tools/list"},
        {"jsonrpc": "2.0", "id": True, "method": "tools/list"},
        {"jsonrpc": "2.0", "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": None},
        {"jsonrpc": "1.0", "id": 1, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 1, "method": 7},
    ],
)
def test_what_firmware_leaves_unanswered_is_left_unanswered(request_: dict[str, Any]) -> None:
    assert _server().receive(request_) is None


def test_ids_are_cut_to_32_bits() -> None:
    assert _answer(_server(), _request("initialize", 2**40))["id"] == 2**31 - 1
    assert _answer(_server(), _request("initialize", 7.9))["id"] == 7


def test_user_tools_are_listed_only_when_asked_for() -> None:
    listed = {tool["name"] for tool in _answer(_server(), _request("tools/list"))["result"]["tools"]}
    assert "self.reboot" not in listed
    everything = _answer(_server(), _request("tools/list", withUserTools=True))["result"]["tools"]
    reboot = next(tool for tool in everything if tool["name"] == "self.reboot")
    assert reboot["annotations"] == {"audience": ["user"]}


def test_a_tool_without_required_arguments_has_no_required_key() -> None:
    tools = {tool["name"]: tool for tool in _answer(_server(), _request("tools/list"))["result"]["tools"]}
    assert "required" not in tools["self.get_device_status"]["inputSchema"]
    volume = tools["self.audio_speaker.set_volume"]["inputSchema"]
    assert volume["required"] == ["volume"]
    assert volume["properties"]["volume"] == {"type": "integer", "minimum": 0, "maximum": 100}


def _many(count: int, size: int = 500) -> tuple[Tool, ...]:
    return tuple(Tool(f"self.tool_{number:03}", "d" * size, _nothing) for number in range(count))


def test_a_page_ends_before_8000_bytes_and_the_cursor_names_the_next_tool() -> None:
    server = _server(_many(40))
    names: list[str] = []
    cursor, pages = "", 0
    while True:
        reply = server.receive(_request("tools/list", cursor=cursor))
        assert isinstance(reply, str)
        result = json.loads(reply)["result"]
        assert len(json.dumps(result, separators=(",", ":"))) <= 8000 + 30
        names += [tool["name"] for tool in result["tools"]]
        pages += 1
        if "nextCursor" not in result:
            break
        cursor = result["nextCursor"]
    assert names == [f"self.tool_{number:03}" for number in range(40)]
    assert pages == 4


def test_a_page_is_as_full_as_the_rule_allows() -> None:
    def page_with(size: int) -> int:
        tools = (Tool("a", "", _nothing), Tool("b", "d" * size, _nothing))
        return len(_answer(_server(tools), _request("tools/list"))["result"]["tools"])

    empty = len(json.dumps(Tool("b", "", _nothing).describe(), separators=(",", ":")))
    first = len('{"tools":[') + empty + 1
    largest = 8000 - 30 - 1 - first - empty
    assert page_with(largest) == 2
    assert page_with(largest + 1) == 1


def test_a_tool_too_big_for_any_page_and_an_unknown_cursor_are_errors() -> None:
    message = _fault(_server(_many(1, 9000)), _request("tools/list"))
    assert message == "Failed to add tool self.tool_000 because of payload size limit"
    unknown = _fault(_server(), _request("tools/list", cursor="nowhere"))
    assert unknown.startswith("Failed to add tool")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "Missing name"),
        ({"name": "self.nothing"}, "Unknown tool: self.nothing"),
        ({"name": "self.audio_speaker.set_volume", "arguments": None}, "Invalid arguments"),
        ({"name": "self.audio_speaker.set_volume"}, "Missing valid argument: volume"),
        ({"name": "self.audio_speaker.set_volume", "arguments": {"volume": "9"}}, "Missing valid argument: volume"),
        (
            {"name": "self.audio_speaker.set_volume", "arguments": {"volume": -1}},
            "Value is below minimum allowed: 0",
        ),
        (
            {"name": "self.audio_speaker.set_volume", "arguments": {"volume": 101}},
            "Value exceeds maximum allowed: 100",
        ),
    ],
)
def test_bad_calls_are_refused_with_the_texts_of_firmware(params: dict[str, Any], message: str) -> None:
    assert _fault(_server(), _request("tools/call", **params)) == message


def test_a_call_without_params_and_an_unknown_method_are_refused() -> None:
    assert _fault(_server(), {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}) == "Missing params"
    assert _fault(_server(), _request("tools/fly")) == "Method not implemented: tools/fly"


def test_an_error_has_no_code_and_is_not_escaped() -> None:
    assert error(3, 'a "quoted" name') == '{"jsonrpc":"2.0","id":3,"error":{"message":"a "quoted" name"}}'


def test_numbers_are_truncated_and_defaults_stand_in_for_wrong_types() -> None:
    tool = Tool("t", "", _nothing, (Parameter("quality", "integer", default=80, minimum=1, maximum=100),))
    server = _server((tool,))
    for given, used in [({"quality": 12.9}, 12), ({"quality": "best"}, 80), ({}, 80), ({"QUALITY": 5}, 5)]:
        call = server.receive(_request("tools/call", name="t", arguments=given))
        assert isinstance(call, PendingCall)
        assert call.arguments == {"quality": used}


async def test_calls_change_the_board() -> None:
    server = _server()
    for name, arguments in [
        ("self.audio_speaker.set_volume", {"volume": 30}),
        ("self.screen.set_brightness", {"brightness": 5}),
        ("self.screen.set_theme", {"theme": "dark"}),
        ("self.lamp.turn_on", {}),
    ]:
        call = server.receive(_request("tools/call", name=name, arguments=arguments))
        assert isinstance(call, PendingCall)
        assert await call.tool.run(server.board, call.arguments) is True
    assert server.board.state() == {"volume": 30, "brightness": 5, "theme": "dark", "lamp": True}
    status = server.board.status()
    assert isinstance(status, dict)
    assert status["audio_speaker"] == {"volume": 30}


async def test_an_unknown_theme_is_answered_with_false_and_a_restart_with_nothing() -> None:
    tools = {tool.name: tool for tool in tools_of(P1)}
    board = Board()
    assert await tools["self.screen.set_theme"].run(board, {"theme": "blue"}) is False
    assert board.theme == "light"
    assert isinstance(await tools["self.reboot"].run(board, {}), Restart)


@pytest.mark.parametrize(
    ("outcome", "text"), [(True, "true"), (False, "false"), (42, "42"), ("as it is", "as it is"), ({"a": 1}, '{"a":1}')]
)
def test_outcomes_become_text(outcome: Outcome, text: str) -> None:
    result = json.loads(answer(1, outcome))["result"]
    assert result == {"content": [{"type": "text", "text": text}], "isError": False}


def test_only_a_camera_profile_offers_the_camera() -> None:
    assert "self.camera.take_photo" not in {tool.name for tool in tools_of(P1)}
    assert "self.camera.take_photo" in {tool.name for tool in tools_of(PROFILES["P1-camera"])}


@pytest.mark.parametrize(
    ("request_", "rule"),
    [
        (_request("tools/list", "seven"), "mcp-request"),
        (_request("tools/list", 2**31), "mcp-request"),
        ({"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": None}, "mcp-request"),
        ({"id": 5, "method": "tools/list"}, "mcp-request"),
    ],
)
def test_requests_that_confuse_firmware_break_a_rule(request_: dict[str, Any], rule: str) -> None:
    assert [name for name, _ in _server().check(request_)] == [rule]


def test_an_id_used_twice_breaks_a_rule() -> None:
    server = _server()
    assert list(server.check(_request("tools/list", 9))) == []
    assert [name for name, _ in server.check(_request("tools/list", 9))] == ["mcp-id-reuse"]


def _pages(server: McpServer, *, with_user_tools: bool) -> list[dict[str, Any]]:
    pages: list[dict[str, Any]] = []
    cursor = ""
    while not pages or cursor:
        page = _answer(server, _request("tools/list", cursor=cursor, withUserTools=with_user_tools))["result"]
        pages.append(page)
        cursor = page.get("nextCursor", "")
    return pages


def test_a_board_with_many_tools_lists_them_on_three_pages_below_8000_bytes() -> None:
    profile = PROFILES["P1-tools"]
    server = McpServer(profile, tools_of(profile), Board())
    pages = _pages(server, with_user_tools=True)
    assert len(pages) == 3
    listed = [tool["name"] for page in pages for tool in page["tools"]]
    assert listed == [tool.name for tool in tools_of(profile)]
    assert all(len(json.dumps(page["tools"], separators=(",", ":"))) <= 8000 for page in pages)


def test_the_users_own_tools_are_those_of_the_contract() -> None:
    listed = {tool["name"]: tool for page in _pages(_server(), with_user_tools=True) for tool in page["tools"]}
    hidden = {name: tool["inputSchema"] for name, tool in listed.items() if "annotations" in tool}
    assert hidden.keys() == {
        "self.get_system_info",
        "self.reboot",
        "self.upgrade_firmware",
        "self.screen.get_info",
        "self.screen.snapshot",
        "self.screen.preview_image",
        "self.assets.set_download_url",
    }
    assert "required" not in hidden["self.upgrade_firmware"], "its default is its help text"
    quality = hidden["self.screen.snapshot"]["properties"]["quality"]
    assert quality == {"type": "integer", "default": 80, "minimum": 1, "maximum": 100}
    assert hidden["self.screen.snapshot"]["required"] == ["url"]
    plain = {tool["name"] for page in _pages(_server(), with_user_tools=False) for tool in page["tools"]}
    assert not plain & hidden.keys()


def _python() -> McpServer:
    profile = PROFILES["P8"]
    return McpServer(profile, tools_of(profile), Board())


def test_py_xiaozhi_answers_errors_with_a_code_and_sound_json() -> None:
    assert _answer(_python(), _request("no/such"))["error"]["code"] == -32603
    said = json.loads(_python().fail(1, 'a "quote"'))
    assert said["error"]["message"] == 'a "quote"'


def test_py_xiaozhi_answers_any_id_and_an_unknown_cursor_with_an_empty_list() -> None:
    answered = _answer(_python(), _request("tools/list", "one", cursor="nowhere"))
    assert answered == {"jsonrpc": "2.0", "id": "one", "result": {"tools": []}}


def test_py_xiaozhi_always_says_what_is_required_and_reports_failed_tools_as_results() -> None:
    tools = _answer(_python(), _request("tools/list"))["result"]["tools"]
    assert all("required" in tool["inputSchema"] for tool in tools)
    assert json.loads(_python().fail_call(1, "broken"))["result"] == {
        "content": [{"type": "text", "text": "broken"}],
        "isError": True,
    }
    assert "error" in json.loads(_server().fail_call(1, "broken"))
