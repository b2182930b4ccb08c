"""C4 to C12 of the device's contract: calls of a device's tools, from the model and back."""

from typing import Any

import pytest

from fleet.core.ports import CallsAsked, ToolCall
from fleet.roles.worker.turns import deadline
from fleet.wire import edge_messages
from fleet.wire.identity import CredentialKeys
from tests.integration.worker.scene import HELLO, PHOTO, VOLUME, Scene, asks, says, scene, text, tool
from tests.support.leaping import leaping
from tests.support.mosquitto_server import MosquittoServer

SET = asks("audio_speaker_set_volume", '{"volume":30}')
LOOK = asks("camera_take_photo", '{"question":"what is it?"}')
JPEG = "/9j/" + "A" * 16_380


async def told(stage: Scene, session: str, *, asked: Any = SET, **outcome: Any) -> str:
    """Let the model call a tool that answers so; return what the model is told."""
    stage.llm.script = [asked, says("Done.")]
    await stage.utter(session, "please")
    await stage.device.answer(await stage.device.hear_request("tools/call"), **outcome)
    return await result(stage)


async def handled(stage: Scene) -> None:
    """Wait until the worker has handled what the device said; the device may have heard nothing else meanwhile."""
    await stage.device.say({"type": "listen", "state": "stop", "session_id": "probe"})
    assert (await stage.device.hear())["session_id"] == "probe"


async def result(stage: Scene) -> str:
    assert (await stage.spoken())[-1:] == ["Done."]
    return stage.llm.asked[-1][0][-1].text


@pytest.mark.parametrize(
    ("outcome", "text_for_model"),
    [
        ({"result": text("true")}, "true"),
        ({"result": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}}, "a\nb"),
        ({"result": {"content": [{"type": "text", "text": "no port"}], "isError": True}}, "error: no port"),
        (
            {"result": {"content": [{"type": "image", "data": JPEG, "mimeType": "image/jpeg"}]}},
            "[image image/jpeg, 12 KB]",
        ),
        (
            {
                "result": {
                    "content": [{"type": "image", "image": f'{{"type":"image","mimeType":"a/b","data":"{JPEG}"}}'}]
                }
            },
            "[image a/b, 12 KB]",
        ),
        ({"result": {"content": [{"type": "image", "image": '{"data":'}]}}, "[image, damaged]"),
        ({"error": {"message": "Unknown tool: x"}}, "error: Unknown tool: x"),
        ({"error": {"code": -32603, "message": "broken"}}, "error: broken"),
        ({"error": {"code": [1], "message": {"why": 1}}}, 'error: {"why": 1}'),
        ({"error": {}}, "error: the device reported an error without a text"),
        ({"error": "bad"}, "error: bad"),
    ],
)
@pytest.mark.requirement("XZ-013", "XZ-014", "XZ-025", "XZ-026")
async def test_what_a_device_answers_reaches_the_model_in_words(
    stage: Scene, outcome: dict[str, Any], text_for_model: str
) -> None:
    assert await told(stage, await stage.prepare(VOLUME), **outcome) == text_for_model


async def test_a_huge_answer_is_cut(stage: Scene) -> None:
    said = await told(stage, await stage.prepare(VOLUME), result=text("word " * 5000))
    assert 8000 < len(said) < 8100
    assert said.endswith("[… cut, 17000 more characters]")


async def test_an_answer_of_broken_json_is_waited_for_in_vain_and_the_session_lives(
    redis_url: str, broker: MosquittoServer, keys: CredentialKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    leap = leaping(monkeypatch)
    async with scene(redis_url, broker, keys, tool_seconds=100.0) as stage:
        session = await stage.prepare(VOLUME)
        stage.llm.script = [SET, says("Done.")]
        await stage.utter(session, "please")
        number = (await stage.device.hear_request("tools/call"))["id"]
        await stage.device.say(
            b'{"type":"mcp","payload":{"jsonrpc":"2.0","id":%d,"error":{"message":"a "b""}}}' % number
        )
        await handled(stage)
        leap(101.0)
        assert (await result(stage)).startswith("error: unknown whether it was done")
        await stage.device.answer({"id": number}, result=text("late"))
        assert await told(stage, session, result=text("true")) == "true"


async def test_repeated_and_foreign_answers_change_nothing(stage: Scene) -> None:
    session = await stage.prepare(VOLUME)
    stage.llm.script = [SET, says("Done.")]
    await stage.utter(session, "please")
    request = await stage.device.hear_request("tools/call")
    await stage.device.answer({"id": 1}, result=text("foreign"))
    await stage.device.answer({"id": str(request["id"])}, result=text("first"))
    await stage.device.answer(request, result=text("second"))
    assert await result(stage) == "first"


@pytest.mark.parametrize(
    ("arguments", "told_model"),
    [
        ('{"volume":150}', "argument 'volume' must be a whole number from 0 to 100, but is 150"),
        ("{}", "argument 'volume' is missing; it must be a whole number from 0 to 100"),
        ('{"volume":', "the arguments are no valid JSON object"),
    ],
)
async def test_arguments_that_do_not_fit_are_never_sent_and_the_model_can_do_better(
    stage: Scene, arguments: str, told_model: str
) -> None:
    session = await stage.prepare(VOLUME)
    stage.llm.script = [
        asks("audio_speaker_set_volume", arguments),
        asks("audio_speaker_set_volume", '{"volume":"99"}'),
    ]
    stage.llm.script.append(says("Done."))
    await stage.utter(session, "louder")
    request = await stage.device.hear_request("tools/call")
    assert request["params"]["arguments"] == {"volume": 99}
    assert stage.llm.asked[1][0][-1].text == f"error: not done, {told_model}"
    await stage.device.answer(request, result=text("true"))
    assert await result(stage) == "true"


@pytest.mark.parametrize("name", ["reboot", "self.reboot", "self_reboot"])
async def test_what_is_for_people_only_the_model_neither_sees_nor_calls(stage: Scene, name: str) -> None:
    session = await stage.prepare(VOLUME, tool("self.reboot", annotations={"audience": ["user"]}))
    stage.llm.script = [asks(name), says("Done.")]
    await stage.utter(session, "restart")
    assert (await result(stage)).startswith("error: there is no tool")
    assert [offer.name for offer in stage.llm.asked[0][1]] == ["audio_speaker_set_volume"]
    assert await told(stage, session, result=text("true")) == "true"


LEAVING = tool("self.system.reconfigure_wifi")
LEAVE = "system_reconfigure_wifi"


async def test_a_device_that_goes_away_as_it_was_told_has_succeeded(stage: Scene) -> None:
    session = await stage.prepare(LEAVING)
    stage.llm.script = [asks(LEAVE), says("Done.")]
    await stage.utter(session, "do it")
    await stage.device.hear_request("tools/call")
    await stage.device.close()
    assert (await result(stage)).startswith("the device was told to and does it now")


async def test_a_device_that_comes_back_before_it_was_missed_has_succeeded(stage: Scene) -> None:
    session = await stage.prepare(LEAVING)
    stage.llm.script = [asks(LEAVE), says("Done.")]
    await stage.utter(session, "restart")
    gone = stage.device
    await gone.hear_request("tools/call")
    stage.device = await type(gone).connect(stage.broker, stage.keys, gone.mac)
    assert (await result(stage)).startswith("the device was told to and does it now")
    await gone.close()


async def test_a_device_that_says_nothing_after_it_was_told_to_go_away_has_succeeded(
    redis_url: str, broker: MosquittoServer, keys: CredentialKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    leap = leaping(monkeypatch)
    async with scene(redis_url, broker, keys, tool_seconds=100.0) as stage:
        session = await stage.prepare(LEAVING)
        stage.llm.script = [asks(LEAVE), says("Done.")]
        await stage.utter(session, "restart")
        await stage.device.hear_request("tools/call")
        leap(101.0)
        assert (await result(stage)).startswith("the device was told to and does it now")


async def test_a_device_that_cannot_go_away_says_why(stage: Scene) -> None:
    session = await stage.prepare(LEAVING)
    said = await told(stage, session, asked=asks(LEAVE), error={"message": "no such file"})
    assert said == "error: no such file"


async def test_a_device_that_answers_before_it_goes_away_has_succeeded(stage: Scene) -> None:
    session = await stage.prepare(LEAVING)
    assert await told(stage, session, asked=asks(LEAVE), result=text("true")) == "true"


async def test_a_device_that_goes_away_otherwise_leaves_it_unknown(stage: Scene) -> None:
    session = await stage.prepare(VOLUME)
    stage.llm.script = [SET, says("Done.")]
    await stage.utter(session, "please")
    await stage.device.hear_request("tools/call")
    await stage.device.close()
    assert await result(stage) == "error: unknown whether it was done, the device disconnected before it answered"


async def test_a_photo_may_take_longer_than_a_turn_and_nothing_is_said_before_it(
    redis_url: str, broker: MosquittoServer, keys: CredentialKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "PROGRESS_SECONDS", 0.1)
    leap = leaping(monkeypatch)
    async with scene(redis_url, broker, keys, turn_seconds=30.0, tool_seconds=0.3) as stage:
        session = await stage.prepare(PHOTO)
        stage.llm.script = [LOOK, says("A cat.")]
        turn = await stage.utter(session, "what is it?")
        request = await stage.device.hear_request("tools/call")
        for _ in range(5):
            assert (await stage.edge.next(edge_messages.TurnProgressCommand)).turn == turn
        leap(31.0)  # longer than a turn
        for _ in range(5):
            assert (await stage.edge.next(edge_messages.TurnProgressCommand)).turn == turn
        other = await stage.another_device()
        await other.say(HELLO)
        await other.hear_type("hello")
        assert (await stage.edge.until(edge_messages.OpenSessionCommand)).device == other.mac
        await stage.device.answer(request, result=text("a cat"))
        await stage.edge.until(edge_messages.StartAnswerCommand)
        assert await stage.spoken() == ["A cat."]
        await other.close()


async def test_speech_has_begun_before_the_device_is_blocked_by_a_photo(
    stage: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert deadline.SETTLE_SECONDS > 0.4
    monkeypatch.setattr(deadline, "SETTLE_SECONDS", 100.0)
    leap = leaping(monkeypatch)
    session = await stage.prepare(PHOTO)
    stage.llm.script = [[*says("Let me look."), *LOOK], says("A cat.")]
    await stage.utter(session, "what is it?")
    await stage.edge.next(edge_messages.StartAnswerCommand)
    for _ in range(5):
        await handled(stage)
    leap(101.0)
    request = await stage.device.hear_request("tools/call")
    await stage.device.answer(request, result=text("a cat"))
    assert await stage.spoken() == ["Let me look.", "A cat."]


async def test_what_is_asked_for_beside_a_photo_waits_for_it(stage: Scene) -> None:
    session = await stage.prepare(PHOTO, VOLUME)
    calls = (ToolCall("a", "camera_take_photo", '{"question":"?"}'), ToolCall("b", *SET_CALL))
    stage.llm.script = [[CallsAsked(calls)], says("Done.")]
    await stage.utter(session, "both")
    photo = await stage.device.hear_request("tools/call")
    assert photo["params"]["name"] == "self.camera.take_photo"
    for _ in range(5):
        await handled(stage)
    await stage.device.answer(photo, result=text("a cat"))
    volume = await stage.device.hear_request("tools/call")
    assert volume["params"]["name"] == "self.audio_speaker.set_volume"
    await stage.device.answer(volume, result=text("true"))
    await result(stage)
    assert [message.text for message in stage.llm.asked[-1][0][-2:]] == ["a cat", "true"]


SET_CALL = ("audio_speaker_set_volume", '{"volume":30}')


async def test_photos_without_end_are_bounded(stage: Scene) -> None:
    session = await stage.prepare(PHOTO)
    calls = tuple(ToolCall(str(number), "camera_take_photo", '{"question":"?"}') for number in range(5))
    stage.llm.script = [[CallsAsked(calls)], says("Done.")]
    await stage.utter(session, "look five times")
    for _ in range(4):
        await stage.device.answer(await stage.device.hear_request("tools/call"), result=text("a cat"))
    assert await result(stage) == "error: not done, it takes long and was asked for too often"
