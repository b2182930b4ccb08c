import pytest

from fleet.adapters.redis.sessions.sessions import SessionRecord
from fleet.adapters.redis.shards.inbox import NO_POST
from fleet.roles.worker.turns.edge_output import EdgeOutput
from fleet.wire.edge_messages import StartAnswerCommand
from tests.support.worker_stage import MAC, WorkerStage

START = StartAnswerCommand(device=MAC, session="s1", turn="t1")


async def output(stage: WorkerStage, edge: bool = True) -> EdgeOutput:
    session = await stage.open("s1") if edge else SessionRecord.of(MAC, {})
    return EdgeOutput(stage.resources.inboxes, session, "t1")


def names(stage: WorkerStage) -> list[str]:
    return [type(command).__name__ for command in stage.edge_commands()]


async def test_what_was_posted_is_not_sent_and_what_comes_later_is(stage: WorkerStage) -> None:
    one = await output(stage)
    one.waiting.append(START)
    words = one.post()
    assert words[3] == 1
    one.end(0)  # before the function of Redis has run
    one.note_posted(words)
    await one.send()
    assert names(stage) == ["EndAnswerCommand"]


async def test_an_answer_ends_once_with_what_waits(stage: WorkerStage) -> None:
    one = await output(stage)
    one.end(2)
    one.end(2)
    await one.send()
    assert names(stage) == ["EndAnswerCommand"]


async def test_in_a_cluster_nothing_is_posted_and_all_is_sent(
    stage: WorkerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await output(stage)
    monkeypatch.setattr(stage.resources.store, "spans_nodes", True)
    one.waiting.append(START)
    words = one.post()
    assert words == NO_POST
    one.note_posted(words)
    await one.send()
    assert names(stage) == ["StartAnswerCommand"]


async def test_without_an_edge_nothing_is_posted_or_sent(stage: WorkerStage) -> None:
    one = await output(stage, edge=False)
    one.waiting.append(START)
    assert one.post() == NO_POST
    await one.send()
    await one.send_progress()
    assert names(stage) == stage.edge_commands("") == []


async def test_progress_is_sent_before_what_waits(stage: WorkerStage) -> None:
    one = await output(stage)
    one.waiting.append(START)
    await one.send_progress()
    await one.send()
    assert names(stage) == ["TurnProgressCommand", "StartAnswerCommand"]
