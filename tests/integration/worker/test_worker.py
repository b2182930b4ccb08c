"""Sessions and turns of the worker."""

import asyncio

import pytest

from fleet.core.ports import CallsAsked, LlmEvent, TextDelta, ToolCall
from fleet.ground.errors import ProviderError
from fleet.wire import edge_messages
from tests.integration.worker.scene import HELLO, VOLUME, Scene, asks, says, text


async def test_a_hello_is_answered_with_a_fresh_key_each_time(stage: Scene) -> None:
    await stage.device.say(HELLO)
    first = await stage.device.hear_type("hello")
    await stage.device.say(HELLO)
    second = await stage.device.hear_type("hello")
    assert first["udp"]["server"] == "h.example"
    assert first["udp"]["nonce"].startswith("01000000")
    assert first["udp"]["nonce"].endswith("0" * 16)
    for part in ("key", "nonce"):
        assert first["udp"][part] != second["udp"][part]
    opened = [await stage.session() for _ in range(2)]
    assert [one.session for one in opened] == [first["session_id"], second["session_id"]]


async def test_a_turn_calls_the_devices_tool_and_speaks_the_answer(stage: Scene) -> None:
    await stage.discover([VOLUME])
    await stage.tools()
    session = await stage.greet()
    call = CallsAsked((ToolCall("c1", "audio_speaker_set_volume", '{"volume": 30}'),))
    stage.llm.script = [[call], [TextDelta("Okay, the volume"), TextDelta(" is 30 now. Enjoy!")]]
    turn = await stage.utter(session, "set the volume to 30")

    request = (await stage.device.hear_type("mcp"))["payload"]
    assert request["method"] == "tools/call"
    assert request["params"] == {"name": "self.audio_speaker.set_volume", "arguments": {"volume": 30}}
    await stage.device.answer(request, result=text("true"))

    assert (await stage.edge.next(edge_messages.StartAnswerCommand)).turn == turn
    assert await stage.spoken() == ["Okay, the volume is 30 now.", "Enjoy!"]
    assert [offer.name for offer in stage.llm.asked[0][1]] == ["audio_speaker_set_volume"]
    assert stage.llm.asked[1][0][-1].text == "true"


async def test_a_model_that_breaks_off_leads_to_an_apology_and_an_end(stage: Scene) -> None:
    session = await stage.greet()
    stage.llm.script = [[TextDelta("The answer is. "), ProviderError("broke off", retryable=False)]]
    await stage.utter(session, "tell me")
    await stage.edge.next(edge_messages.StartAnswerCommand)
    texts = await stage.spoken()
    assert texts[0].startswith("The answer")
    assert "Sorry" in " ".join(texts)
    await stage.until_remembered(("user", "tell me"), ("assistant", "The answer is. "))


async def test_a_model_that_fails_at_once_leaves_nothing_in_the_history(stage: Scene) -> None:
    session = await stage.greet()
    stage.llm.script = [[ProviderError("down", retryable=False)], says("Here I am.")]
    for said in ("one", "two"):
        await stage.utter(session, said)
        await stage.spoken()
    await stage.until_remembered(("user", "two"), ("assistant", "Here I am."))


@pytest.mark.parametrize("empty", [[], says(""), says(" \n", " ")])
async def test_an_empty_answer_is_apologised_for_and_the_next_turn_works(stage: Scene, empty: list[LlmEvent]) -> None:
    session = await stage.greet()
    stage.llm.script = [empty, empty, says("Yes?")]
    await stage.utter(session, "hm")
    await stage.edge.next(edge_messages.StartAnswerCommand)
    assert await stage.spoken() == ["Sorry, I cannot answer right now."]
    await stage.utter(session, "hello")
    await stage.edge.next(edge_messages.StartAnswerCommand)
    assert await stage.spoken() == ["Yes?"]
    await stage.until_remembered(("user", "hello"), ("assistant", "Yes?"))


async def test_what_is_said_before_and_after_a_call_is_spoken_in_this_order(stage: Scene) -> None:
    session = await stage.prepare(VOLUME)
    call = asks("audio_speaker_set_volume", '{"volume":30}')
    stage.llm.script = [[*says("One moment please"), *call], says("It is 30 now.")]
    await stage.utter(session, "set it to 30")
    await stage.edge.next(edge_messages.StartAnswerCommand)
    assert (await stage.edge.next(edge_messages.SpeakSentenceCommand)).text == "One moment please"
    await stage.device.answer(await stage.device.hear_request("tools/call"), result=text("true"))
    assert (await stage.edge.next(edge_messages.SpeakSentenceCommand)).text == "It is 30 now."
    assert (await stage.edge.next(edge_messages.EndAnswerCommand)).index == 2


async def test_an_abort_ends_the_turn_and_closes_the_models_stream(stage: Scene) -> None:
    session = await stage.greet()
    stage.llm.script = [[TextDelta("Once upon a time. "), asyncio.Event()]]
    await stage.utter(session, "a story")
    await stage.edge.next(edge_messages.StartAnswerCommand)
    await stage.device.say({"type": "abort", "session_id": session})
    async with asyncio.timeout(240):
        await stage.llm.closed.wait()


async def test_a_message_of_an_unknown_session_is_answered_with_its_goodbye(stage: Scene) -> None:
    await stage.device.say({"type": "listen", "state": "start", "mode": "auto", "session_id": "stale"})
    assert (await stage.device.hear_type("goodbye"))["session_id"] == "stale"


async def test_an_utterance_that_is_delivered_again_is_answered_once(stage: Scene) -> None:
    session = await stage.greet()
    stage.llm.script = [[TextDelta("Once. ")], [TextDelta("Twice. ")]]
    shard = stage.resources.store.keys.shard(stage.device.mac)
    heard = edge_messages.UtteranceEvent(device=stage.device.mac, session=session, turn="same", text="hi")
    for _ in range(2):
        await stage.resources.inboxes.to_shard(shard, heard)
    await stage.edge.next(edge_messages.StartAnswerCommand)
    await stage.edge.next(edge_messages.SpeakSentenceCommand)
    await stage.edge.next(edge_messages.EndAnswerCommand)
    assert await stage.greet()
    assert len(stage.llm.asked) == 1


async def test_a_session_whose_edge_is_gone_is_ended_at_the_next_word(stage: Scene) -> None:
    session = await stage.greet()
    await stage.resources.edges.retire("edge-1")
    listen = {"type": "listen", "state": "start", "mode": "auto", "session_id": session}
    async with asyncio.timeout(240):
        while (await stage.resources.sessions.read(stage.device.mac)) is not None:
            await stage.device.say(listen)
            await asyncio.sleep(0.05)
    assert (await stage.device.hear_type("goodbye"))["session_id"] == session


async def test_an_abort_is_always_answered_with_a_stop(stage: Scene) -> None:
    await stage.device.say({"type": "abort", "session_id": "stale"})
    stop = await stage.device.hear_type("tts")
    assert (stop["state"], stop["session_id"]) == ("stop", "stale")


async def test_a_devices_goodbye_is_never_answered(stage: Scene) -> None:
    session = await stage.greet()
    await stage.device.say({"type": "goodbye", "session_id": "stale"})
    await stage.device.say({"type": "goodbye", "session_id": session})
    assert (await stage.edge.next(edge_messages.CloseSessionCommand)).session == session
    await stage.device.say({"type": "listen", "state": "stop", "session_id": "probe"})
    assert (await stage.device.hear_type("goodbye"))["session_id"] == "probe"


@pytest.mark.parametrize("junk", [b"", b"{", b"[1]", b'{"type":7}', b"\xff\xfe", b'{"type":"mcp","payload":{"id":1}}'])
async def test_junk_costs_nothing(stage: Scene, junk: bytes) -> None:
    await stage.device.say(junk)
    assert await stage.greet()


async def test_a_silent_session_is_ended_with_its_own_id(stage: Scene) -> None:
    session = await stage.greet()
    silent = edge_messages.SessionSilentEvent(device=stage.device.mac, session=session, reason="idle")
    await stage.resources.inboxes.to_shard(stage.resources.store.keys.shard(stage.device.mac), silent)
    assert (await stage.device.hear_type("goodbye"))["session_id"] == session
    assert await stage.resources.sessions.read(stage.device.mac) is None
