from collections.abc import Mapping

from pydantic import JsonValue

from fleet.core.ports import ToolCall
from fleet.core.tool_gate import DENIED, NO_VOICE, ONE_AT_A_TIME, WAITS, ToolGate
from fleet.core.tool_policy import read_policy

POLICY = read_policy("deny self.camera.*, ask dangerous")
REBOOT, PHOTO = "self.reboot", "self.camera.take_photo"


class User:
    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def ask(self, call: ToolCall, tool: str, arguments: Mapping[str, JsonValue]) -> str:
        self.asked.append((call.id, tool))
        return "Really?"


async def check(gate: ToolGate, tool: str, call: str = "c1") -> str:
    return await gate.check(ToolCall(call, "x", "{}"), tool, "device", {})


async def test_a_denied_tool_is_hidden_and_refused_also_after_a_yes() -> None:
    gate = ToolGate(POLICY, User().ask, confirmed=ToolCall("c1", "x", "{}"))
    assert gate.hides(PHOTO, "device") and not gate.hides(REBOOT, "device")
    assert await check(gate, PHOTO) == DENIED


async def test_the_user_is_asked_about_one_call_of_a_turn() -> None:
    user = User()
    gate = ToolGate(POLICY, user.ask)
    assert await check(gate, "self.lamp.on") == ""
    assert gate.question == ""
    assert [await check(gate, REBOOT, "c1"), await check(gate, REBOOT, "c2")] == [WAITS, ONE_AT_A_TIME]
    assert (gate.question, user.asked) == ("Really?", [("c1", REBOOT)])


async def test_where_nobody_can_be_asked_the_call_is_refused() -> None:
    assert await check(ToolGate(POLICY), REBOOT) == NO_VOICE
    assert await check(ToolGate(), REBOOT) == ""


async def test_a_yes_counts_for_its_call_once() -> None:
    user = User()
    gate = ToolGate(POLICY, user.ask, confirmed=ToolCall("c1", "x", "{}"))
    assert [await check(gate, REBOOT, "c2"), await check(gate, REBOOT, "c1")] == [WAITS, ""]
    assert await check(gate, REBOOT, "c1") == ONE_AT_A_TIME
