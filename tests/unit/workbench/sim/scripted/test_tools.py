import asyncio
import json

from fleet.workbench.sim.messages.message import JsonObject
from fleet.workbench.sim.profiles.profile import find_profile
from fleet.workbench.sim.scripted.tools import ScriptedTools
from fleet.workbench.sim.tools.mcp_server import error


def request(number: object, method: str, **params: object) -> JsonObject:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}  # type: ignore[dict-item]


def call(number: int, name: str, **arguments: object) -> JsonObject:
    return request(number, "tools/call", name=name, arguments=arguments)


def server() -> ScriptedTools:
    return ScriptedTools(find_profile("P1"), asyncio.get_running_loop().time)


async def test_it_answers_as_firmware_does_and_remembers_what_it_was_asked() -> None:
    tools = server()
    answer = json.loads(str(await tools.receive(call(1, "self.audio_speaker.set_volume", volume=30))))
    assert answer["result"]["content"] == [{"type": "text", "text": "true"}]
    assert tools.board.volume == 30
    (asked,) = tools.find("self.audio_speaker.set_volume")
    assert (asked.method, asked.arguments, asked.id) == ("tools/call", {"volume": 30}, 1)
    assert tools.find("tools/call") == [asked]
    assert tools.find("tools/call", after=asked.at) == []
    assert tools.findings == []


async def test_a_check_may_have_another_answer_ready_by_tool_or_by_method() -> None:
    tools = server()
    tools.intercept["self.lamp.turn_on"] = lambda body: b"by tool"
    tools.intercept["tools/call"] = lambda body: error(2, "by method")
    assert await tools.receive(call(1, "self.lamp.turn_on")) == b"by tool"
    assert "by method" in str(await tools.receive(call(2, "self.lamp.turn_off")))
    assert not tools.board.lamp


async def test_a_tool_that_restarts_the_device_is_never_answered() -> None:
    assert await server().receive(call(1, "self.reboot")) is None


async def test_what_firmware_would_not_answer_is_complained_about() -> None:
    tools = server()
    assert await tools.receive(request("one", "tools/list")) is None
    await tools.receive(request(5, "tools/list"))
    await tools.receive(request(5, "tools/list"))
    assert [rule for rule, _ in tools.findings] == ["mcp-request", "mcp-id-reuse"]


async def test_requests_are_waited_for_up_to_a_time() -> None:
    tools = server()
    async with asyncio.timeout(240), asyncio.TaskGroup() as group:
        waiting = group.create_task(tools.until("tools/list", 5, count=2))
        await tools.receive(request(1, "tools/list"))
        await tools.receive(request(2, "tools/list"))
    assert [one.id for one in waiting.result()] == [1, 2]
    assert await tools.until("initialize", 0.01) == []
