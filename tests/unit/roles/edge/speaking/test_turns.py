"""What an edge tells a shard of its turns, and for how long it waits for one."""

import asyncio

import pytest

from fleet.ground.errors import Unavailable
from fleet.wire.edge_messages import AnswerInterruptedEvent, EdgeEvent
from tests.support.edge_stage import Device, Stage, on_stage, settle


async def speaking(stage: Stage) -> tuple[Device, str]:
    """Have a long answer of which the first sentence has begun to be heard."""
    device = await stage.open()
    await stage.listen()
    stage.voice.packets_each = 200
    device.say()
    turn = (await stage.heard()).turn
    await stage.speak(turn, "A", "B")
    await device.packets(2)
    return device, turn


def interruptions(stage: Stage) -> list[tuple[str, int]]:
    return [(event.turn, event.spoken) for event in stage.posted if isinstance(event, AnswerInterruptedEvent)]


async def test_the_shard_hears_how_much_was_spoken_before_an_abort() -> None:
    async with on_stage() as stage:
        _, turn = await speaking(stage)
        for _ in range(2):
            await stage.send("speech_aborted")
        await stage.until(lambda: interruptions(stage))
        await stage.until(lambda: stage.edge._services.outbox._queue.empty())
        assert interruptions(stage) == [(turn, 1)]
        assert stage.told().count("stop") == 2


async def test_the_shard_hears_that_an_answer_was_not_waited_for() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        device.say()
        turn = (await stage.heard()).turn
        await stage.send("speech_aborted")
        await stage.until(lambda: interruptions(stage))
        assert interruptions(stage) == [(turn, 0)]


async def test_the_shard_hears_how_much_was_spoken_before_the_session_ended() -> None:
    async with on_stage() as stage:
        _, turn = await speaking(stage)
        await stage.send("session_closed")
        await stage.until(lambda: interruptions(stage))
        assert interruptions(stage) == [(turn, 1)]


async def test_an_answer_that_was_spoken_to_its_end_is_not_cut_off() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        device.say()
        await stage.speak((await stage.heard()).turn, "A")
        await stage.until(lambda: "speech_done" in stage.kinds())
        await stage.send("speech_aborted")
        await stage.send("session_closed")
        await stage.until(lambda: stage.edge._services.outbox._queue.empty())
        assert interruptions(stage) == []


async def come_back(stage: Stage) -> None:
    """Let the device return, and wait until its session has taken note."""
    await stage.send("device_returned")
    [session] = stage.edge._registry
    await stage.until(lambda: not session.parts.return_timer.tick)


async def test_a_device_that_was_never_spoken_to_is_not_told_to_stop_when_it_comes_back() -> None:
    """py-xiaozhi would stop to record: its hello may have come before the news of its connection."""
    async with on_stage() as stage:
        await stage.open()
        await come_back(stage)
        await stage.listen()
        await come_back(stage)
        assert stage.told() == []


async def test_a_device_that_knows_the_end_of_an_answer_is_not_told_to_stop_again() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        device.say()
        await stage.speak((await stage.heard()).turn, "A")
        await stage.told_at_least("stt", "start", "sentence_start", "stop")
        await come_back(stage)
        await stage.listen()
        await come_back(stage)
        assert stage.told() == ["stt", "start", "sentence_start", "stop", "stop"]


async def test_a_device_that_says_hello_at_once_hears_nothing_of_the_session_before() -> None:
    async with on_stage() as stage:
        await stage.open()
        await stage.send("speech_aborted")
        [session] = stage.edge._registry
        await stage.send("device_returned")
        await stage.send("session_opened", "s2", **{**OTHER, "ssrc": 9})
        assert not session.parts.return_timer.tick
        assert stage.told() == ["stop"]


async def test_a_device_that_comes_back_is_told_to_stop_unless_it_is_spoken_to() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.send("speech_aborted")
        await come_back(stage)
        assert stage.told() == ["stop", "stop"]
        await stage.listen()
        device.say()
        turn = (await stage.heard()).turn
        await stage.send("speech_begun", turn=turn)
        await stage.send("sentence_ready", turn=turn, index=0, text="A", language="en")
        await device.packets(1)
        await come_back(stage)
        assert stage.told() == ["stop", "stop", "stt", "start", "sentence_start"]
        await stage.send("speech_ended", turn=turn, index=1)
        await stage.told_at_least("stop", "sentence_start", "stop")
        assert len(await device.packets(3)) == 3


async def test_a_turn_that_goes_on_is_waited_for() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        device.say()
        turn = (await stage.heard()).turn
        [session] = stage.edge._registry
        waiting = session.parts.turn_taking.turns._turn
        assert waiting
        waiting.progress_at -= 60
        await stage.send("turn_working", turn=turn)
        await stage.send("turn_working", turn="another")
        stage.pass_time(60)
        assert session.parts.turn_taking.turns.busy
        assert not stage.voice.spoken
        stage.pass_time(66)
        await stage.told_at_least("stop")
        assert stage.voice.spoken == ["Sorry, I cannot answer right now."]
        assert not session.parts.turn_taking.turns.busy
        assert interruptions(stage) == [(turn, 0)]


async def test_a_full_edge_takes_no_session_more() -> None:
    async with on_stage(edge_sessions=1) as stage:
        await stage.open()
        await stage.send("session_opened", "s2", **{**OTHER, "ssrc": 9})
        assert stage.edge.load == 1
        await stage.until(lambda: "session_silent" in stage.kinds())


OTHER = {
    "dialect": "xiaozhi",
    "shard": 3,
    "key": "0" * 32,
    "uplink_rate": 16000,
    "uplink_frame_ms": 60,
    "downlink_rate": 24000,
    "downlink_frame_ms": 60,
}


async def test_the_face_comes_behind_the_beginning_of_speech_and_never_before() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.send("speech_begun", turn="t")
        for _ in range(2):
            await stage.send("sentence_ready", turn="t", index=0, text="A", language="en", emotion="happy")
        # Nobody knows yet where the device is, so that it is not told to speak.
        assert stage.told() == []
        device.be_silent(5)
        await stage.send("speech_ended", turn="t", index=1)
        await stage.told_at_least("stop")
        assert stage.told() == ["start", "llm", "sentence_start", "stop"]
        assert [order["emotion"] for order in stage.orders if order["type"] == "llm"] == ["happy"]


async def test_a_face_that_comes_while_the_device_speaks_is_sent_once() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        device.be_silent(5)
        await stage.send("speech_begun", turn="t")
        await stage.told_at_least("start")
        for _ in range(2):
            await stage.send("sentence_ready", turn="t", index=0, text="A", language="en", emotion="sad")
        await stage.send("speech_ended", turn="t", index=1)
        await stage.told_at_least("stop")
        assert stage.told() == ["start", "llm", "sentence_start", "stop"]


async def test_a_question_that_is_lost_after_the_goodbye_is_not_apologised_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with on_stage() as stage:
        await stage.open()
        asked, lose = asyncio.Event(), asyncio.Event()

        async def to_shard(shard: int, event: EdgeEvent) -> None:
            asked.set()
            await lose.wait()
            raise Unavailable("redis is away")

        stage.to_shard = to_shard  # type: ignore[method-assign]
        await stage.send("wake_word_heard", text="What is the weather like in Paris?")
        await stage.until(asked.is_set)
        await stage.send("session_closed")
        await stage.send("agents_changed", session="")  # until then the dispatcher holds the session it found last
        lose.set()
        await stage.until(lambda: "utterance not delivered" in caplog.text)
        await settle()
        assert (stage.voice.spoken, "work crashed" in caplog.text) == ([], False)
