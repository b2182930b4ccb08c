"""C1 to C3 and C6 of the device's contract: how a device's tools become known."""

import asyncio
import itertools
import json
from typing import Any

import pytest

from fleet.roles.worker.sessions import discovery
from fleet.roles.worker.sessions.tool_list_budget import MOST_TOOLS, ListBudget
from fleet.roles.worker.turns import turns
from fleet.wire.identity import CredentialKeys
from fleet.wire.mcp import LARGEST_LIST, LARGEST_PAGE
from tests.integration.worker.scene import HELLO, PHOTO, VOLUME, Scene, says, stand, tool, work
from tests.integration.worker.scripted import PATIENCE
from tests.support.mosquitto_server import MosquittoServer


async def test_a_device_that_connects_is_asked_for_its_tools_page_by_page(stage: Scene) -> None:
    await stage.discover([VOLUME], [tool("self.b"), {"broken": 1}], [tool("self.c")])
    assert await stage.tools(3) == ["self.audio_speaker.set_volume", "self.b", "self.c"]


async def test_requests_have_numbers_of_their_own_and_no_null(stage: Scene) -> None:
    numbers = []
    for method in ("initialize", "notifications/initialized", "tools/list", "tools/list"):
        request = await stage.device.hear_request(method)
        assert "null" not in json.dumps(request)
        if method.startswith("notifications"):
            assert "id" not in request
            continue
        numbers.append(request["id"])
        result = {"tools": [tool("self.a")], "nextCursor": "self.b"} if method == "tools/list" else {}
        await stage.device.answer(request, result=result)
    assert all(type(number) is int and 0 < number < 2**31 for number in numbers)
    assert len(set(numbers)) == 3


async def test_half_a_tool_list_is_kept_and_asked_for_again(stage: Scene) -> None:
    await stage.initialize()
    await stage.list_page({"tools": [VOLUME], "nextCursor": "more"})
    await stage.device.answer(await stage.device.hear_request("tools/list"), error={"message": "too big"})
    assert await stage.tools() == ["self.audio_speaker.set_volume"]
    await stage.device.say(HELLO)
    await stage.device.hear_request("initialize")


async def test_a_page_of_broken_json_ends_the_list_after_a_while(stage: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    await stage.initialize()
    request = await stage.device.hear_request("tools/list")
    monkeypatch.setattr(discovery, "ANSWER_SECONDS", 0.2)
    await stage.device.answer(request, result={"tools": [VOLUME], "nextCursor": "more"})
    number = (await stage.device.hear_request("tools/list"))["id"]
    await stage.device.say(b'{"type":"mcp","payload":{"id":%d,"error":{"message":"no "x" here"}}}' % number)
    assert await stage.tools() == ["self.audio_speaker.set_volume"]
    assert await stage.greet()


@pytest.mark.parametrize("cursors", [["same"] * 3, ["b", "c", "b"]])
async def test_a_cursor_that_leads_nowhere_new_ends_the_list(stage: Scene, cursors: list[str]) -> None:
    await stage.initialize()
    for number, cursor in enumerate(cursors[: len(set(cursors)) + 1]):
        await stage.list_page({"tools": [tool(f"self.{number}")], "nextCursor": cursor})
    assert len(await stage.tools(len(set(cursors)) + 1)) == len(set(cursors)) + 1
    await stage.device.say({"type": "listen", "state": "stop", "session_id": "probe"})
    assert (await stage.device.hear())["type"] == "goodbye"


async def test_a_list_that_never_ends_is_bounded(stage: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "MOST_PAGES", 3)
    await stage.initialize()
    asked = [await stage.list_page({"tools": [tool(f"self.{n}")], "nextCursor": f"c{n}"}) for n in range(3)]
    assert asked == ["", "c0", "c1"]
    assert await stage.tools(3) == ["self.0", "self.1", "self.2"]


async def test_many_tools_are_bounded(stage: Scene) -> None:
    await stage.initialize()
    names = [f"self.{number}" for number in range(MOST_TOOLS + 10)]
    for at in range(0, len(names), 38):
        await stage.list_page({"tools": [tool(name) for name in names[at : at + 38]], "nextCursor": f"{at}"})
    assert await stage.tools() == names[:MOST_TOOLS]


async def test_a_page_that_firmware_would_not_send_ends_the_list(stage: Scene) -> None:
    long = "x" * 1900
    await stage.initialize()
    await stage.list_page({"tools": [VOLUME], "nextCursor": "more"})
    page = [tool(f"self.{number}", description=long) for number in range(5)]
    assert len(json.dumps(page)) > LARGEST_PAGE
    await stage.list_page({"tools": page, "nextCursor": "again"})
    assert await stage.tools() == ["self.audio_speaker.set_volume", *(f"self.{number}" for number in range(4))]


async def test_a_list_is_kept_up_to_64_kilobytes(stage: Scene) -> None:
    await stage.initialize()
    page = 0
    schema = {"type": "object", "properties": {"a": {"type": "string", "enum": ["x" * 7000]}}}
    while (page + 1) * 7000 < LARGEST_LIST + 7000:
        await stage.list_page({"tools": [tool(f"self.{page}", inputSchema=schema)], "nextCursor": f"{page}"})
        page += 1
    kept = await stage.tools()
    assert kept == [f"self.{number}" for number in range(LARGEST_LIST // 7200)]


async def test_a_list_that_had_to_go_is_asked_for_again(stage: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "RETRY_SECONDS", 0.1)
    asked = itertools.count()
    monkeypatch.setattr(ListBudget, "_is_over", lambda _: next(asked) == 0)
    await stage.discover([VOLUME])
    await stage.discover([VOLUME])
    assert await stage.tools() == ["self.audio_speaker.set_volume"]


async def test_a_tool_that_is_listed_twice_is_kept_once(stage: Scene) -> None:
    await stage.discover([VOLUME, tool("self.b")], [VOLUME])
    assert await stage.tools(2) == ["self.audio_speaker.set_volume", "self.b"]


@pytest.mark.parametrize(
    "hostile",
    [
        {"name": "self.deep", "inputSchema": json.loads('{"a":' * 200 + "1" + "}" * 200)},
        {"name": "self.huge", "inputSchema": {"properties": {"a": {"description": "x" * 10_000}}}},
        {"name": ["no text"], "inputSchema": {}},
        {"name": "x" * 1000},
        {"name": ""},
        [],
        None,
    ],
)
async def test_a_damaged_tool_does_not_cost_the_others(stage: Scene, hostile: Any) -> None:
    await stage.discover([tool("self.a"), hostile, tool("self.b")])
    assert await stage.tools(2) == ["self.a", "self.b"]


@pytest.mark.parametrize("refusal", [{"error": {"message": "no"}}, {"result": {"tools": 5}}, {"result": None}])
async def test_when_nothing_can_be_read_what_was_known_serves_on(stage: Scene, refusal: dict[str, Any]) -> None:
    await stage.discover([VOLUME])
    await stage.tools()
    await stage.reconnect()
    await stage.initialize()
    await stage.device.answer(await stage.device.hear_request("tools/list"), **refusal)
    await stage.device.say(HELLO)
    await stage.device.hear_request("initialize")
    assert await stage.tools() == ["self.audio_speaker.set_volume"]


async def test_tools_are_asked_for_at_every_connection(stage: Scene) -> None:
    await stage.discover([VOLUME])
    await stage.tools()
    await stage.reconnect()
    await stage.discover([PHOTO])
    async with asyncio.timeout(240):
        while await stage.tools() != ["self.camera.take_photo"]:
            await asyncio.sleep(0.01)


async def test_late_repeated_and_unknown_answers_are_ignored(stage: Scene) -> None:
    await stage.initialize()
    request = await stage.device.hear_request("tools/list")
    await stage.device.answer({"id": 5}, result={"tools": [tool("self.foreign")]})
    await stage.device.answer({"id": "x" * 5000}, result={"tools": [tool("self.foreign")]})
    await stage.device.answer(request, result={"tools": [VOLUME]})
    await stage.device.answer(request, result={"tools": [tool("self.late")]})
    assert await stage.greet()
    assert await stage.tools() == ["self.audio_speaker.set_volume"]


async def test_a_device_that_came_back_while_nobody_worked_is_asked_and_answered(
    redis_url: str, broker: MosquittoServer, keys: CredentialKeys
) -> None:
    async with stand(redis_url, broker, keys) as one:
        async with work(one.resources, broker):
            await one.reconnect()
            await one.discover([VOLUME])
            await one.tools()
        await one.reconnect()
        await one.device.say(HELLO)
        async with work(one.resources, broker):
            heard = [await one.device.hear() for _ in range(2)]
            assert {message["type"] for message in heard} == {"hello", "mcp"}
            [initialize] = [message["payload"] for message in heard if message["type"] == "mcp"]
            assert initialize["method"] == "initialize"


async def test_a_turn_waits_for_the_tools_that_the_device_is_being_asked_for(
    stage: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "TOOLS_SECONDS", PATIENCE)
    await stage.initialize()
    request = await stage.device.hear_request("tools/list")
    session = await stage.greet()
    stage.llm.script = [says("Yes.")]
    await stage.utter(session, "what can you do?")
    # The journal exists, so the turn has begun; the model has not been asked.
    async with asyncio.timeout(PATIENCE):
        while await stage.resources.conversations.journal(stage.device.mac) is None:
            await asyncio.sleep(0.01)
    assert not stage.llm.asked
    await stage.device.answer(request, result={"tools": [VOLUME]})
    assert await stage.spoken() == ["Yes."]
    [(_, offers)] = stage.llm.asked
    assert offers


async def test_a_turn_goes_on_without_a_list_that_does_not_come(stage: Scene) -> None:
    session = await stage.greet()
    stage.llm.script = [says("Yes.")]
    await stage.utter(session, "what can you do?")
    assert await stage.spoken() == ["Yes."]
    [(_, offers)] = stage.llm.asked
    assert not offers
