import asyncio
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from fleet.adapters.redis.sessions.conversations import Begun
from fleet.core.ports import CallsAsked, TextDelta, ToolCall
from fleet.core.rates import Rate
from fleet.ground.errors import ProviderError, Unavailable
from fleet.roles.worker.calls.device_calls import DeviceCalls
from fleet.roles.worker.turns.turn import WorkerTurn
from fleet.wire.edge_messages import EndAnswerCommand, UtteranceEvent
from fleet.wire.mcp import ToolSpec
from fleet.wire.messages import ResponseEvent
from tests.support.virtual_time import elapse
from tests.support.worker_stage import MAC, WorkerStage, worker_stage

LAMP = ToolSpec(name="self.lamp.on", description="", input_schema={"type": "object", "properties": {}})
ASKS = [CallsAsked((ToolCall("c1", "lamp_on", "{}"),))]


def calls_of(stage: WorkerStage) -> DeviceCalls:
    return DeviceCalls(stage.resources.calls, stage.resources.reports, Rate(1, 5), stage.counts)


async def turn(stage: WorkerStage, calls: DeviceCalls | None = None, **heard: Any) -> WorkerTurn:
    utterance = UtteranceEvent(
        **{"device": MAC, "session": "s1", "turn": "t1", "text": "light", "language": "en"} | heard
    )
    begun: Begun = await stage.begin(utterance.turn, "light")
    return WorkerTurn(stage.resources, calls or calls_of(stage), stage.shard, begun, utterance)


async def test_an_utterance_is_answered_kept_and_ended(stage: WorkerStage) -> None:
    await stage.open("s1")
    stage.llm.script = [[TextDelta("It is "), TextDelta("on. Good night")]]
    await (await turn(stage)).run()
    assert stage.spoken() == ["It is on.", "Good night"]
    assert stage.sent() == [], "its edge shows what was recognised"
    end = stage.edge_commands()[-1]
    assert isinstance(end, EndAnswerCommand) and end.index == 2
    history = (await stage.resources.conversations.context(MAC, 9)).history
    assert [one.text for one in history] == ["light", "It is on. Good night"]


async def test_the_entry_of_a_spoken_turn_goes_with_its_end_and_that_of_others_later(stage: WorkerStage) -> None:
    await stage.open("s1")
    inbox = stage.resources.store.keys.inbox(0)
    for typed, gone in ((False, True), (True, False)):
        entry = stage.redis.run("XADD", inbox, "*", "m", "{}")
        stage.llm.script = [[TextDelta("On.")]]
        work = await turn(stage, typed=typed, turn=f"t{typed}")
        assert await work.run(entry=entry) is gone
        assert (stage.redis.run("XRANGE", inbox, entry, entry) == []) is gone


async def test_a_tool_is_called_on_the_device_and_its_outcome_reaches_the_model(stage: WorkerStage) -> None:
    await stage.open("s1")
    await stage.resources.tools.register(stage.shard.owner, MAC, "xiaozhi", (LAMP,))
    stage.llm.script = [ASKS, [TextDelta("Done.")]]
    calls = calls_of(stage)
    async with asyncio.TaskGroup() as group:
        group.create_task((await turn(stage, calls)).run())
        while not (requests := [one["payload"] for one in stage.sent() if one["type"] == "mcp"]):
            await elapse(0.01)
        done = {"content": [{"type": "text", "text": "it burns"}]}
        await calls.answer(stage.shard, MAC, ResponseEvent(str(requests[0]["id"]), done))
    assert stage.spoken() == ["Done."]
    assert stage.llm.asked[1][0][-1].text == "it burns"
    assert len(stage.llm.asked[0][1]) == 1


@pytest.mark.parametrize("answer", [[ProviderError("broken", retryable=False)], []])
async def test_a_model_without_an_answer_ends_in_an_apology_and_no_history(stage: WorkerStage, answer: Any) -> None:
    await stage.open("s1")
    stage.llm.script = [answer] * 3
    await (await turn(stage)).run()
    assert len(stage.spoken()) >= 1
    assert (await stage.resources.conversations.context(MAC, 9)).history == ()


async def test_a_turn_that_takes_too_long_says_so_in_time() -> None:
    async with worker_stage(turn_seconds=20) as stage:
        await stage.connect()
        await stage.open("s1")
        stage.llm.script = [[asyncio.Event()]]
        begun = asyncio.get_running_loop().time()
        await (await turn(stage)).run()
        assert 20 <= asyncio.get_running_loop().time() - begun < 21
        assert len(stage.spoken()) >= 1


async def test_without_redis_a_turn_breaks_off_to_be_taken_up_and_asks_the_model_once_more(stage: WorkerStage) -> None:
    await stage.open("s1")
    wait = asyncio.Event()
    stage.llm.script = [[TextDelta("One. "), wait, TextDelta("Two. ")], [TextDelta("Two. ")]]
    first = await turn(stage)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(_outcome(first))
        while stage.spoken() != ["One."]:
            await elapse(0.01)
        stage.connection.fault = RedisConnectionError("away")
        wait.set()
    assert running.result() is Unavailable
    stage.connection.fault = None
    await (await turn(stage)).run()
    assert stage.spoken() == ["One.", "Two."]


async def _outcome(one: WorkerTurn) -> type[Exception] | None:
    try:
        await one.run()
    except Unavailable as error:
        return type(error)
    return None


async def test_a_turn_that_was_cut_only_ends_its_answer(stage: WorkerStage) -> None:
    await stage.open("s1")
    stage.llm.script = [[TextDelta("One. Two. "), asyncio.Event()]]
    one = await turn(stage)
    task = asyncio.get_running_loop().create_task(one.run())
    while stage.spoken() != ["One.", "Two."]:
        await elapse(0.01)
    task.cancel()
    await asyncio.wait([task])
    await one.cut()
    await (await turn(stage)).run()
    assert [command.index for command in stage.edge_commands() if isinstance(command, EndAnswerCommand)] == [2, 2]
    assert len(stage.llm.asked) == 1


async def test_who_typed_what_was_cut_is_told_so_by_the_worker_that_takes_it_up(stage: WorkerStage) -> None:
    await stage.open("s1")
    stage.llm.script = [[TextDelta("One. Two. "), asyncio.Event()]]
    await stage.resources.replies.expect(MAC, "t1")
    one = await turn(stage, typed=True)
    task = asyncio.get_running_loop().create_task(one.run())
    while stage.spoken() != ["One.", "Two."]:
        await elapse(0.01)
    task.cancel()
    await asyncio.wait([task])
    await one._writer.cut()  # its worker dies between this and the reply
    await (await turn(stage, typed=True)).run()
    reply = await stage.resources.replies.read(MAC, "t1")
    assert reply and reply.state == "interrupted"


async def test_a_typed_text_is_shown_and_its_reply_stored(stage: WorkerStage) -> None:
    await stage.open("s1")
    stage.llm.script = [[TextDelta("On.")]]
    await stage.resources.replies.expect(MAC, "t1")
    await (await turn(stage, typed=True)).run()
    reply = await stage.resources.replies.read(MAC, "t1")
    assert reply and (reply.state, reply.text) == ("answered", "On.")
    assert [(one["type"], one["text"]) for one in stage.sent()] == [("stt", "light")]
