import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import JsonValue

from fleet.core.ports import ToolCall, ToolOffer
from fleet.core.server_tools import Caller, Persona, ServerResult
from fleet.core.tool_mix import INTERRUPTED, ToolMix, outcome_text
from fleet.core.toolbox import MOST_OFFERS

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@dataclass
class Own:
    names: Sequence[str]
    called: list[ToolCall] = field(default_factory=list)

    @property
    def offers(self) -> Sequence[ToolOffer]:
        return [ToolOffer(name, name, NUMBER) for name in self.names]

    async def call(self, call: ToolCall) -> str:
        self.called.append(call)
        return "own"


@dataclass
class Server:
    names: Sequence[str]
    safe: frozenset[str] = frozenset()
    called: list[tuple[str, dict[str, JsonValue]]] = field(default_factory=list)
    result: ServerResult = field(default_factory=lambda: ServerResult({"ok": True}))

    @property
    def offers(self) -> Sequence[ToolOffer]:
        return [ToolOffer(name, name, NUMBER) for name in self.names]

    def repeatable(self, name: str) -> bool:
        return name in self.safe

    def introduce(self, persona: Persona) -> str:
        return ""

    async def call(self, name: str, arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
        self.called.append((name, arguments))
        return self.result


def mix(own: Own, server: Server, begun: Sequence[str] = ()) -> ToolMix:
    async def run(_: str, name: str, arguments: dict[str, JsonValue]) -> ServerResult:
        return await server.call(name, arguments, Caller("s"))

    return ToolMix(own, server, run, begun)


def asked(name: str, arguments: Any = None, call: str = "c1") -> ToolCall:
    return ToolCall(call, name, json.dumps({"n": 1} if arguments is None else arguments))


async def test_each_call_goes_to_the_owner_of_its_tool() -> None:
    own, server = Own(["light"]), Server(["get_weather"])
    tools = mix(own, server)
    assert [offer.name for offer in tools.offers] == ["light", "get_weather"]
    assert await tools.call(asked("light")) == "own"
    assert await tools.call(asked("get_weather")) == '{"ok": true}'
    assert (len(own.called), server.called) == (1, [("get_weather", {"n": 1})])


async def test_own_tools_keep_their_names_and_the_servers_give_way() -> None:
    own, server = Own(["get_weather"]), Server(["get_weather", "get_time"])
    tools = mix(own, server)
    plain, other, time = (offer.name for offer in tools.offers)
    assert (plain, time) == ("get_weather", "get_time")
    assert other.startswith("get_weather_")
    assert await tools.call(asked("get_weather")) == "own"
    await tools.call(asked(other))
    assert server.called == [("get_weather", {"n": 1})]


async def test_a_name_that_nobody_has_is_answered_with_the_names_of_both() -> None:
    answer = await mix(Own(["light"]), Server(["get_time"])).call(asked("fly"))
    assert "TOOL_NOT_FOUND" in answer
    assert "light" in answer
    assert "get_time" in answer


async def test_arguments_that_are_no_json_reach_no_server() -> None:
    server = Server(["get_time"])
    tools = mix(Own([]), server)
    assert (await tools.call(ToolCall("c", "get_time", "{broken"))).startswith("error: ")
    assert server.called == []


async def test_the_server_validates_its_arguments_for_models_are_shown_a_plainer_schema() -> None:
    server = Server(["get_time"])
    assert await mix(Own([]), server).call(asked("get_time", {"n": {"a": 1}})) == '{"ok": true}'
    assert server.called == [("get_time", {"n": {"a": 1}})]


async def test_a_call_that_may_have_been_made_is_not_made_again_unless_that_does_no_harm() -> None:
    server = Server(["act", "look"], frozenset({"look"}))
    tools = mix(Own([]), server, ["c1", "c2"])
    assert await tools.call(asked("act", call="c1")) == INTERRUPTED
    assert INTERRUPTED.startswith("error: ")
    assert await tools.call(asked("look", call="c2")) == '{"ok": true}'
    assert server.called == [("look", {"n": 1})]


async def test_a_later_call_with_the_same_id_is_another_one() -> None:
    server = Server(["act"])
    tools = mix(Own([]), server, ["c1"])
    assert await tools.call(asked("act", call="c1")) == INTERRUPTED
    assert await tools.call(asked("act", call="c1")) == '{"ok": true}'


async def test_an_own_call_that_may_have_been_made_is_the_owners_to_judge() -> None:
    own = Own(["light"])
    assert await mix(own, Server([]), ["c1"]).call(asked("light")) == "own"


async def test_no_more_is_offered_than_endpoints_take_and_the_log_says_how_many_are_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    own, server = Own([f"own{n}" for n in range(100)]), Server([f"server{n}" for n in range(100)])
    names = [offer.name for offer in mix(own, server).offers]
    assert len(names) == MOST_OFFERS
    assert names[:100] == list(own.names)
    [line] = caplog.records
    assert vars(line)["left_out"] == 200 - MOST_OFFERS


def test_nothing_is_logged_where_there_is_room_for_all(caplog: pytest.LogCaptureFixture) -> None:
    assert mix(Own(["light"]), Server(["get_time"])).offers
    assert not caplog.records


def test_results_are_told_as_text_of_bounded_length() -> None:
    assert outcome_text(ServerResult("plain")) == "plain"
    assert outcome_text(ServerResult({"city": "北京"})) == '{"city": "北京"}'
    assert outcome_text(ServerResult("no wind", failed=True)) == "error: no wind"
    assert len(outcome_text(ServerResult("long words " * 10_000))) < 10_000
