"""Devices that register their tools: no hello, no audio; text in, messages out."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fleet.adapters.files.operator_tokens import DEVICES_INPUT, OperatorTokens
from fleet.adapters.redis.sessions.replies import Reply
from fleet.core.ports import TextDelta, ThoughtDelta
from fleet.wire import edge_messages
from fleet.wire.identity import CredentialKeys
from tests.integration.worker.registrar import (
    LEVEL,
    VOLUME,
    ask,
    dumped,
    hear,
    hear_call,
    hear_messages,
    register,
    send,
    type_text,
)
from tests.integration.worker.scene import HELLO, PHOTO, Scene, asks, random_mac, says, scene, stand, text, work
from tests.integration.worker.scripted import PATIENCE
from tests.support.api_server import api_client
from tests.support.mosquitto_server import MosquittoServer


async def situation(stage: Scene) -> str:
    """Return the newest user message that the model was given, with the situation before it."""
    return next(message.text for message in reversed(stage.llm.asked[-1][0]) if message.role == "user")


async def until_reply(stage: Scene, turn: str) -> Reply:
    async with asyncio.timeout(PATIENCE):
        while not ((reply := await stage.resources.replies.read(stage.device.mac, turn)) and reply.over):
            await asyncio.sleep(0.01)
    return reply


@pytest.mark.requirement("REG-09")
async def test_a_registration_is_confirmed_under_its_id(stage: Scene) -> None:
    assert await register(stage.device, VOLUME, LEVEL) == {
        "jsonrpc": "2.0",
        "id": "client-reg-001",
        "result": {"status": "registered", "message": "Tools were successfully registered."},
    }
    assert await stage.tools(2) == ["amplify_volume", "read_level"]
    assert (await stage.resources.devices.read(stage.device.mac)).dialect == "registrar"


@pytest.mark.requirement("REG-05")
async def test_a_second_registration_replaces_the_first(stage: Scene) -> None:
    await register(stage.device, VOLUME, LEVEL)
    assert (await register(stage.device, LEVEL, number=2))["id"] == 2
    assert await stage.tools() == ["read_level"]
    await register(stage.device)
    assert await stage.resources.tools.read(stage.device.mac) == ()


@pytest.mark.requirement("REG-02")
async def test_the_topic_says_who_it_is_and_no_other_device_is_registered(stage: Scene) -> None:
    other = random_mac()
    refused = await register(stage.device, VOLUME, mac_addr=other)
    assert refused["error"]["code"] == -32602
    assert await stage.resources.tools.read(stage.device.mac) == ()
    assert await stage.resources.tools.read(other) == ()


@pytest.mark.requirement("REG-04")
async def test_the_confirmation_names_tools_that_are_not_the_devices(stage: Scene) -> None:
    confirmed = await register(stage.device, VOLUME | {"main_type": "local"}, LEVEL)
    assert confirmed["result"]["status"] == "registered"
    assert "amplify_volume" in confirmed["result"]["message"]
    assert await stage.tools() == ["read_level"]


@pytest.mark.requirement("REG-10")
async def test_a_known_registrar_is_told_what_is_wrong_with_its_frames(stage: Scene) -> None:
    await register(stage.device, LEVEL)
    for frame, code in ((b"{", -32700), (b"[1]", -32600), (b'{"method":"x","id":1}', -32600)):
        await stage.device.say(frame)
        assert (await hear(stage.device))["error"]["code"] == code
    await send(stage.device, {"method": "mcp/nothing", "id": "n"})
    assert await hear(stage.device) == {
        "jsonrpc": "2.0",
        "id": "n",
        "error": {"code": -32601, "message": "there is no method 'mcp/nothing'"},
    }


@pytest.mark.requirement("REG-10")
async def test_a_device_of_unknown_dialect_is_not_told_anything_of_its_junk(stage: Scene) -> None:
    for frame in (b"{", b"[1]", b"\xff"):
        await stage.device.say(frame)
    assert (await register(stage.device, LEVEL))["result"]["status"] == "registered"


@pytest.mark.requirement("REG-11")
@pytest.mark.requirement("REG-12")
@pytest.mark.parametrize("result", ["loud", 25.5, None, ["a"], {"status": "success", "message": "好"}])
async def test_a_query_waits_and_the_model_is_given_its_result_as_it_is(stage: Scene, result: Any) -> None:
    await register(stage.device, LEVEL)
    stage.llm.script = [asks("read_level"), says("It is so.")]
    await type_text(stage, "how loud is it")
    call = await hear_call(stage.device)
    assert call["params"] == {"tool_name": "read_level", "tool_input": {}}
    assert isinstance(call["id"], str)
    await send(stage.device, {"id": call["id"], "result": result})
    assert (await hear_messages(stage.device))[-1] == ("final", "It is so.")
    assert stage.llm.asked[1][0][-1].text == (result if isinstance(result, str) else dumped(result))


@pytest.mark.requirement("REG-13")
@pytest.mark.parametrize("code", [-32000, -32099])
async def test_an_error_of_a_query_reaches_the_model(stage: Scene, code: int) -> None:
    await register(stage.device, LEVEL)
    stage.llm.script = [asks("read_level"), says("Sorry.")]
    await type_text(stage, "how loud is it")
    call = await hear_call(stage.device)
    await send(stage.device, {"id": call["id"], "error": {"code": code, "message": "音量级别超出范围"}})
    await hear_messages(stage.device)
    assert stage.llm.asked[1][0][-1].text == "error: 音量级别超出范围"


@pytest.mark.requirement("REG-17")
async def test_a_control_is_sent_and_the_model_goes_on_at_once(stage: Scene) -> None:
    await register(stage.device, VOLUME)
    stage.llm.script = [asks("amplify_volume", '{"level": 80}'), says("Done.")]
    await type_text(stage, "louder")
    call = await hear_call(stage.device)
    assert call["params"] == {"tool_name": "amplify_volume", "tool_input": {"level": 80}}
    assert await hear_messages(stage.device) == [("chunk", "Done."), ("final", "Done.")]  # and nobody has answered
    assert stage.llm.asked[1][0][-1].text == "success"


@pytest.mark.requirement("REG-18")
async def test_a_control_that_failed_is_told_to_the_model_in_the_next_turn(stage: Scene) -> None:
    await register(stage.device, VOLUME)
    stage.llm.script = [asks("amplify_volume", '{"level": 80}'), says("Done."), says("I see.")]
    await type_text(stage, "louder")
    call = await hear_call(stage.device)
    await hear_messages(stage.device)
    await send(stage.device, {"id": call["id"], "error": {"code": -32000, "message": "the amplifier is off"}})
    async with asyncio.timeout(PATIENCE):
        while not (await stage.resources.conversations.context(stage.device.mac, 0)).reports:
            await asyncio.sleep(0.01)
    await type_text(stage, "well?")
    await hear_messages(stage.device)
    assert 'tool failed {"tool":"amplify_volume","error":"the amplifier is off"}' in await situation(stage)


@pytest.mark.requirement("REG-18")
async def test_a_control_that_went_well_is_not_mentioned_again(stage: Scene) -> None:
    await register(stage.device, VOLUME)
    stage.llm.script = [asks("amplify_volume", '{"level": 80}'), says("Done."), says("I see.")]
    await type_text(stage, "louder")
    call = await hear_call(stage.device)
    await hear_messages(stage.device)
    for _ in range(2):
        await send(stage.device, {"id": call["id"], "result": {"status": "success"}})
    await type_text(stage, "well?")
    await hear_messages(stage.device)
    assert "tool failed" not in await situation(stage)


@pytest.mark.requirement("REG-17")
async def test_a_control_that_cannot_be_sent_is_no_success(stage: Scene) -> None:
    await register(stage.device, VOLUME)
    await stage.device.close()
    async with asyncio.timeout(PATIENCE):
        while (await stage.resources.devices.read(stage.device.mac)).online:
            await asyncio.sleep(0.01)
    stage.llm.script = [asks("amplify_volume", '{"level": 80}'), says("Not done.")]
    turn = await type_text(stage, "louder")
    assert await until_reply(stage, turn) == Reply("answered", "Not done.")
    assert stage.llm.asked[1][0][-1].text == "error: not done, the device is not connected"


@pytest.mark.requirement("REG-14")
async def test_an_answer_comes_in_pieces_that_make_up_the_whole(stage: Scene) -> None:
    await register(stage.device, LEVEL)
    stage.llm.script = [
        [TextDelta("It is **sunny**, and"), TextDelta(" warm. \n\nTake"), TextDelta(" a hat."), *asks("read_level")],
        says("One more thing: enjoy 😀"),
    ]
    await type_text(stage, "the weather?")
    said = []
    while "method" not in (frame := await hear(stage.device)) or frame["method"] == "mcp/ai/message":
        said.append((frame["params"]["type"], frame["params"]["content"]))
    await send(stage.device, {"id": frame["id"], "result": 1})
    said += await hear_messages(stage.device)
    assert [kind for kind, _ in said] == ["chunk"] * (len(said) - 1) + ["final"]
    assert len(said) > 3
    whole = "It is **sunny**, and warm. \n\nTake a hat.\nOne more thing: enjoy 😀"
    assert "".join(content for kind, content in said if kind == "chunk") == whole == said[-1][1]


@pytest.mark.requirement("REG-14")
async def test_thoughts_are_sent_as_such_and_are_no_part_of_the_answer(stage: Scene) -> None:
    await register(stage.device, LEVEL)
    stage.llm.script = [[ThoughtDelta("The user "), ThoughtDelta("asks."), TextDelta("Yes.")]]
    turn = await type_text(stage, "really?")
    assert await hear_messages(stage.device) == [("thought", "The user asks."), ("chunk", "Yes."), ("final", "Yes.")]
    assert await until_reply(stage, turn) == Reply("answered", "Yes.")


@pytest.mark.requirement("REG-15")
async def test_what_a_registrar_reports_the_model_knows(stage: Scene) -> None:
    await register(stage.device, LEVEL)
    await send(stage.device, {"method": "door", "params": {"open": True}})
    stage.llm.script = [says("Yes.")]
    await type_text(stage, "hello")
    await hear_messages(stage.device)
    assert 'door {"open":true}' in await situation(stage)


@pytest.mark.requirement("REG-26")
async def test_a_registrar_that_is_new_hears_nothing_before_its_confirmation(stage: Scene) -> None:
    """Nor anything that its document does not know later, whatever it does."""
    device = await stage.unknown_device()
    stage.device = device
    stage.llm.script = [says("Yes.")]
    # The answer has its end before the device is known: it is not told it afterwards.
    assert await until_reply(stage, await type_text(stage, "too early")) == Reply("answered", "Yes.")
    await ask(device, LEVEL)
    assert (await device.hear())["result"]["status"] == "registered"
    await stage.reconnect()
    await ask(stage.device, LEVEL)
    assert (await stage.device.hear())["result"]["status"] == "registered"


@pytest.mark.requirement("REG-19")
async def test_a_known_registrar_is_never_asked_for_its_tools(stage: Scene) -> None:
    await register(stage.device, LEVEL)
    await stage.reconnect()
    stage.llm.script = [asks("read_level"), says("It is 5.")]
    await type_text(stage, "how loud is it")  # what it registered before serves until it registers again
    call = await stage.device.hear()
    assert call["method"] == "mcp/tool/execute"  # nothing came before
    await send(stage.device, {"id": call["id"], "result": 5})
    assert [(await stage.device.hear())["params"]["type"] for _ in range(2)] == ["chunk", "final"]
    await ask(stage.device, VOLUME)
    assert (await stage.device.hear())["result"]["status"] == "registered"


@pytest.mark.requirement("REG-16")
async def test_a_registrar_with_audio_speaks_and_is_sent_the_text(stage: Scene) -> None:
    hello = HELLO | {"features": {}}
    await register(stage.device, LEVEL)
    await stage.device.say(hello)
    while (welcome := await stage.device.hear()).get("type") != "hello":
        pass
    session = welcome["session_id"]
    opened = await stage.session()
    assert (opened.session, opened.dialect) == (session, "xiaozhi")
    stage.llm.script = [asks("read_level"), says("It is 5.")]
    await stage.utter(session, "how loud is it")
    call = await hear_call(stage.device)
    await send(stage.device, {"id": call["id"], "result": 5})
    await stage.edge.next(edge_messages.StartAnswerCommand)
    assert await stage.spoken() == ["It is 5."]
    assert await hear_messages(stage.device) == [("chunk", "It is 5."), ("final", "It is 5.")]


@pytest.mark.requirement("REG-16")
@pytest.mark.parametrize("features", [{}, {"mcp": True}])
async def test_registering_within_a_session_counts_for_it(stage: Scene, features: dict[str, bool]) -> None:
    await stage.device.say(HELLO | {"features": features})
    while (welcome := await stage.device.hear()).get("type") != "hello":
        pass
    await register(stage.device, LEVEL)
    await stage.device.say(HELLO | {"features": features})
    while (welcome := await stage.device.hear()).get("type") != "hello":
        pass
    stage.llm.script = [asks("read_level"), says("It is 5.")]
    await stage.utter(welcome["session_id"], "how loud is it")
    assert (await hear_call(stage.device))["params"]["tool_name"] == "read_level"


@pytest.mark.requirement("REG-07")
async def test_registering_all_the_time_is_refused(
    redis_url: str, broker: MosquittoServer, keys: CredentialKeys
) -> None:
    async with scene(redis_url, broker, keys, rate_hellos="0.0001/2") as stage:
        answers = [await register(stage.device, LEVEL, number=number) for number in range(3)]
    assert ["result" in answer for answer in answers] == [True, True, False]
    assert answers[2]["error"]["code"] == -32000


@pytest.mark.requirement("REG-20")
async def test_typed_text_is_polite_where_it_is_to_be(stage: Scene) -> None:
    await register(stage.device, LEVEL)
    stage.llm.script = [[TextDelta("One moment. "), asyncio.Event()], says("Here.")]
    first = await type_text(stage, "a story")
    assert (await hear(stage.device))["params"]["type"] == "chunk"
    second = await type_text(stage, "hello?", polite=True)
    assert await until_reply(stage, second) == Reply("busy")
    third = await type_text(stage, "stop and say something")
    assert (await until_reply(stage, first)).state == "interrupted"
    assert await until_reply(stage, third) == Reply("answered", "Here.")
    assert await hear_messages(stage.device) == [("final", "One moment.")]
    assert await hear_messages(stage.device) == [("chunk", "Here."), ("final", "Here.")]


@pytest.mark.requirement("REG-21")
async def test_a_xiaozhi_in_a_session_shows_the_text_and_speaks_the_answer(stage: Scene) -> None:
    session = await stage.greet()
    stage.llm.script = [says("Hello there.")]
    turn = await type_text(stage, "say hello")
    assert (await stage.edge.next(edge_messages.StartAnswerCommand)).turn == turn
    assert await stage.spoken() == ["Hello there."]
    heard = await stage.device.hear_type("stt")
    assert (heard["session_id"], heard["text"]) == (session, "say hello")
    assert await until_reply(stage, turn) == Reply("answered", "Hello there.")


@pytest.mark.requirement("REG-21")
async def test_a_xiaozhi_without_a_session_uses_its_tools_and_shows_the_answer(stage: Scene) -> None:
    await stage.discover([PHOTO])
    await stage.tools()
    stage.llm.script = [asks("camera_take_photo", '{"question": "who"}'), says("It is **you** 😀.")]
    turn = await type_text(stage, "who is there")
    request = await stage.device.hear_request("tools/call")
    await stage.device.answer(request, result=text("a person"))
    alert = await stage.device.hear_type("alert")
    assert (alert["message"], alert["emotion"]) == ("It is you.", "happy")
    assert (await until_reply(stage, turn)).text == "It is **you** 😀."


@pytest.mark.requirement("REG-20")
async def test_a_model_that_fails_is_apologised_for_in_text(stage: Scene) -> None:
    await register(stage.device, LEVEL)
    stage.llm.script = [says(""), says("")]
    turn = await type_text(stage, "hm")
    said = await hear_messages(stage.device)
    assert said[-1] == ("final", "Sorry, I cannot answer right now.")
    assert (await until_reply(stage, turn)).state == "failed"


@pytest.mark.requirement("REG-20")
async def test_what_an_operator_enters_at_the_api_the_device_does_and_both_are_told(
    stage: Scene, keys: CredentialKeys, tmp_path: Path
) -> None:
    file = tmp_path / "tokens"
    token = OperatorTokens(file).add("anna", frozenset({DEVICES_INPUT}))
    mac = stage.device.mac
    await register(stage.device, LEVEL)
    stage.llm.script = [asks("read_level"), says("It is 5.")]
    async with (
        api_client(stage.resources.store, keys, operator_tokens_file=file) as api,
        asyncio.TaskGroup() as group,
    ):
        posted = api.post(
            f"/devices/{mac}/input?wait=120",
            json={"text": "how loud is it", "language": "en"},
            headers={"Authorization": f"Bearer {token}"},
        )
        entered = group.create_task(posted)
        call = await hear_call(stage.device)
        await send(stage.device, {"id": call["id"], "result": 5})
        assert await hear_messages(stage.device) == [("chunk", "It is 5."), ("final", "It is 5.")]
    assert entered.result().status_code == 200
    assert (entered.result().json()["state"], entered.result().json()["text"]) == ("answered", "It is 5.")
    assert "'en'" in await situation(stage)


@pytest.fixture
async def site(redis_url: str, own_broker: MosquittoServer, keys: CredentialKeys) -> AsyncIterator[Scene]:
    """A device; the test brings the workers, one after the other."""
    async with stand(redis_url, own_broker, keys, tool_seconds=PATIENCE) as one:
        yield one


@pytest.mark.requirement("REG-25")
async def test_a_worker_ends_in_the_middle_and_the_next_sends_no_call_again_and_says_the_rest(site: Scene) -> None:
    site.llm.script = [[TextDelta("One moment. Please"), TextDelta(" wait."), *asks("read_level")], says("It is 5.")]
    async with work(site.resources, site.broker):
        await site.reconnect()
        await register(site.device, LEVEL)
        turn = await type_text(site, "how loud is it")
        said = [(await hear(site.device))["params"]["content"] for _ in range(2)]
        call = await hear_call(site.device)
    async with work(site.resources, site.broker):
        await send(site.device, {"id": call["id"], "result": 5})
        said += [content for kind, content in await hear_messages(site.device) if kind == "chunk"]
        assert await until_reply(site, turn) == Reply("answered", "One moment. Please wait.\nIt is 5.")
    assert "".join(said) == "One moment. Please wait.\nIt is 5."


@pytest.mark.requirement("REG-25")
async def test_a_control_of_a_worker_that_ended_is_not_sent_again_and_its_failure_is_told(site: Scene) -> None:
    gate = asyncio.Event()
    site.llm.script = [asks("amplify_volume", '{"level": 3}'), [gate], says("Done."), says("I see.")]
    async with work(site.resources, site.broker):
        await site.reconnect()
        await register(site.device, VOLUME)
        await type_text(site, "quieter")
        call = await hear_call(site.device)
        async with asyncio.timeout(PATIENCE):
            while len(site.llm.asked) < 2:
                await asyncio.sleep(0.01)
    async with work(site.resources, site.broker):
        assert (await hear_messages(site.device))[-1] == ("final", "Done.")
        await send(site.device, {"id": call["id"], "error": {"code": -32000, "message": "the amplifier is off"}})
        async with asyncio.timeout(PATIENCE):
            while not (await site.resources.conversations.context(site.device.mac, 0)).reports:
                await asyncio.sleep(0.01)
        await type_text(site, "well?")
        await hear_messages(site.device)
        assert "the amplifier is off" in await situation(site)
