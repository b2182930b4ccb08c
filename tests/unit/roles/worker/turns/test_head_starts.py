"""Answers that are asked of the model before their utterance is certain, on a worker's tables in memory."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from fleet.adapters.redis.shards.inbox import StreamEntry
from fleet.core.ports import CallsAsked, TextDelta, ToolCall
from fleet.core.rates import Rate
from fleet.ground.errors import ProviderError
from fleet.ground.metrics import turns as timed
from fleet.roles.worker.calls.device_calls import DeviceCalls
from fleet.roles.worker.sessions.discovery import Discovery
from fleet.roles.worker.turns import head_starts
from fleet.roles.worker.turns.head_start import LONGEST_SECONDS
from fleet.roles.worker.turns.turns import WorkerTurns
from fleet.wire.edge_messages import (
    EdgeCommand,
    EndAnswerCommand,
    PrepareSentenceCommand,
    UtteranceEvent,
    UtteranceTentativeEvent,
    UtteranceWithdrawnEvent,
)
from fleet.wire.mcp import ToolSpec
from tests.support.virtual_time import elapse
from tests.support.worker_stage import MAC, WorkerStage

LAMP = ToolSpec(name="self.lamp.on", description="", input_schema={"type": "object", "properties": {}})
ASKS = [CallsAsked((ToolCall("c1", "lamp_on", "{}"),))]


class People:
    """A device's user, as an edge reports them to a worker's turns."""

    def __init__(self, stage: WorkerStage) -> None:
        self._stage = stage
        calls = DeviceCalls(stage.resources.calls, stage.resources.reports, Rate(1, 5), stage.counts)
        self.discovery = Discovery(stage.resources, Counter())
        self._turns = WorkerTurns(stage.resources, calls, self.discovery, Counter())
        self._entries = 0

    async def pause(self, turn: str, text: str, session: str = "s1") -> None:
        self._turns.head_starts.begin(
            self._stage.shard, UtteranceTentativeEvent(device=MAC, session=session, turn=turn, text=text, language="en")
        )
        await self.pause_goes_on()

    async def pause_goes_on(self) -> None:
        await elapse(0.05)

    async def go_on(self, turn: str) -> None:
        await self._turns.interrupt(self._stage.shard, UtteranceWithdrawnEvent(device=MAC, session="s1", turn=turn))
        await elapse(0.05)

    async def finish(self, turn: str, text: str) -> None:
        """Commit; return when the answer is written, or some seconds later."""
        self._entries += 1
        heard = UtteranceEvent(device=MAC, session="s1", turn=turn, text=text, language="en")
        entry = StreamEntry(0, f"{int(self._stage.redis.now() * 1000)}-{self._entries}", heard)
        await self._turns.begin(self._stage.shard, entry, heard)
        await elapse(1)


async def open_people(stage: WorkerStage) -> People:
    await stage.connect()
    await stage.open("s1")
    return People(stage)


async def history(stage: WorkerStage) -> list[str]:
    return [line.text for line in (await stage.resources.conversations.context(MAC, 9)).history]


def of(stage: WorkerStage, kind: type[EdgeCommand]) -> list[Any]:
    return [command for command in stage.edge_commands() if isinstance(command, kind)]


def outcomes() -> dict[str, float]:
    return {outcome: timed.head_starts.read()[(outcome,)] for outcome in ("used", "wasted", "refused")}


async def test_a_committed_turn_uses_what_was_asked_before(stage: WorkerStage) -> None:
    people, before = await open_people(stage), outcomes()
    stage.llm.script = [[TextDelta("It is "), TextDelta("on. Good night.")]]
    await people.pause("t1", "light")
    assert [(one.turn, one.text, one.language) for one in of(stage, PrepareSentenceCommand)] == [
        ("t1", "It is on.", "en")
    ]
    assert stage.spoken() == [] and await history(stage) == []
    assert await stage.resources.conversations.journal(MAC) is None
    await people.finish("t1", "light")
    assert stage.spoken() == ["It is on.", "Good night."]
    assert await history(stage) == ["light", "It is on. Good night."]
    assert len(stage.llm.asked) == 1
    assert outcomes()["used"] == before["used"] + 1


async def test_a_withdrawn_turn_leaves_no_trace_and_its_request_is_closed(stage: WorkerStage) -> None:
    people, before = await open_people(stage), outcomes()
    stage.llm.script = [[TextDelta("It "), asyncio.Event()], [TextDelta("Both are on.")]]
    await people.pause("t1", "light")
    await people.go_on("t1")
    assert stage.llm.closed.is_set()
    assert stage.edge_commands() == [] and await history(stage) == []
    await people.finish("t2", "light and radio")
    assert await history(stage) == ["light and radio", "Both are on."]
    assert outcomes()["wasted"] == before["wasted"] + 1


async def test_the_model_is_not_asked_before_the_tools_of_the_device_are_known(stage: WorkerStage) -> None:
    people = await open_people(stage)
    stage.llm.script = [[TextDelta("It is on.")]]
    known = asyncio.Event()
    discovering = people.discovery._running[MAC] = asyncio.ensure_future(known.wait())
    discovering.add_done_callback(lambda _: people.discovery._running.clear())
    await people.pause("t1", "light")
    assert not stage.llm.asked
    known.set()
    await people.pause_goes_on()
    assert len(stage.llm.asked) == 1


async def test_no_tool_is_called_before_the_commit(stage: WorkerStage) -> None:
    people = await open_people(stage)
    await stage.resources.tools.register(stage.shard.owner, MAC, "xiaozhi", (LAMP,))
    stage.llm.script = [ASKS]
    await people.pause("t1", "light")
    await elapse(LONGEST_SECONDS / 2)
    assert stage.sent() == []
    await people.finish("t1", "light")
    assert [one["payload"]["method"] for one in stage.sent() if one["type"] == "mcp"] == ["tools/call"]
    assert len(stage.llm.asked) == 1


async def test_a_turn_with_other_words_asks_anew(stage: WorkerStage) -> None:
    people = await open_people(stage)
    stage.llm.script = [[TextDelta("One."), asyncio.Event()], [TextDelta("Two. And "), asyncio.Event()]]
    await people.pause("t1", "light")
    await people.finish("t1", "light and radio")
    assert stage.spoken() == ["Two."]
    assert stage.llm.closed.is_set(), "the first one; the second goes on"


async def test_the_model_is_not_asked_for_a_session_that_has_ended(stage: WorkerStage) -> None:
    people = await open_people(stage)
    await people.pause("t1", "light", session="s0")
    assert stage.llm.asked == []


async def test_a_head_start_that_fails_costs_the_turn_nothing(stage: WorkerStage) -> None:
    people = await open_people(stage)
    stage.llm.script = [[ProviderError("away", retryable=True)], [TextDelta("Two.")]]
    await people.pause("t1", "light")
    await people.finish("t1", "light")
    assert stage.spoken() == ["Two."]


async def test_an_answer_that_breaks_off_after_the_commit_is_not_taken_for_whole(stage: WorkerStage) -> None:
    people = await open_people(stage)
    stage.llm.script = [[TextDelta("It is on. And "), ProviderError("away", retryable=False)]]
    await people.pause("t1", "light")
    await people.finish("t1", "light")
    assert stage.spoken()[0] == "It is on."
    assert len(stage.spoken()) > 1, "the apology"


async def test_an_answer_goes_on_being_read_after_the_commit(stage: WorkerStage) -> None:
    people, more = await open_people(stage), asyncio.Event()
    stage.llm.script = [[TextDelta("It is on. "), more, TextDelta("Good night.")]]
    await people.pause("t1", "light")
    await people.finish("t1", "light")
    await elapse(2 * LONGEST_SECONDS)
    more.set()
    await elapse(1)
    assert stage.spoken() == ["It is on.", "Good night."]
    assert of(stage, EndAnswerCommand)


async def test_a_head_start_without_its_turn_ends_by_itself(stage: WorkerStage) -> None:
    people, before = await open_people(stage), outcomes()
    stage.llm.script = [[asyncio.Event()]]
    await people.pause("t1", "light")
    await elapse(LONGEST_SECONDS + 1)
    assert stage.llm.closed.is_set()
    assert outcomes()["wasted"] == before["wasted"] + 1


async def test_there_are_so_many_head_starts_at_a_time(stage: WorkerStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_starts, "MOST", 0)
    people, before = await open_people(stage), outcomes()
    await people.pause("t1", "light")
    assert stage.llm.asked == []
    assert outcomes()["refused"] == before["refused"] + 1


async def test_an_utterance_that_comes_before_its_head_start_begins_none(stage: WorkerStage) -> None:
    people = await open_people(stage)
    stage.llm.script = [[asyncio.Event()]]
    await people.finish("t1", "light")
    await people.pause("t1", "light")
    assert len(stage.llm.asked) == 1


async def test_a_turn_that_is_withdrawn_after_its_commit_leaves_only_its_calls(stage: WorkerStage) -> None:
    people = await open_people(stage)
    await stage.resources.tools.register(stage.shard.owner, MAC, "xiaozhi", (LAMP,))
    stage.llm.script = [[TextDelta("It is on.")], ASKS]
    await people.finish("t1", "light")
    await people.go_on("t1")
    assert await history(stage) == []
    await people.finish("t2", "lamp")
    await people.go_on("t2")
    known = (await stage.resources.conversations.context(MAC, 9)).history
    assert [line.text for line in known if line.role == "user"] == ["lamp"]
    assert [call.name for line in known for call in line.calls] == ["lamp_on"]
