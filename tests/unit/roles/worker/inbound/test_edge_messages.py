from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.ground.errors import Fenced, Unavailable
from fleet.ground.tasks import keep_running, running
from fleet.roles.worker.inbound.edge_messages import InboxReader
from fleet.roles.worker.ownership.shard import Shard
from fleet.wire.edge_messages import AnswerDoneEvent, AnswerInterruptedEvent, SessionSilentEvent, UtteranceEvent
from tests.support.virtual_time import elapse
from tests.support.worker_stage import MAC, WorkerStage


class Turns:
    """Stands for turns and sessions; notes what it was given, in order."""

    def __init__(self, inboxes: Inboxes) -> None:
        self.inboxes = inboxes
        self.spoken = self
        self.noted: list[str] = []
        self.failures: list[Exception] = []
        self.keeps = False

    async def begin(self, shard: Shard, entry: Any, utterance: UtteranceEvent) -> bool:
        await elapse(0.1)
        if self.failures:
            raise self.failures.pop(0)
        self.noted.append(f"begin {utterance.turn}")
        return self.keeps

    async def interrupt(self, shard: Shard, cut: AnswerInterruptedEvent) -> None:
        self.noted.append(f"interrupt {cut.turn}")

    async def take(self, shard: Shard, entry: Any, answer: AnswerDoneEvent | AnswerInterruptedEvent) -> None:
        self.noted.append(f"spoken {answer.turn}")
        await self.inboxes.discard([entry])

    async def say_goodbye(self, shard: Shard, device: str, session: str, reason: str) -> bool:
        self.noted.append(f"goodbye {reason}")
        return True

    def cancel(self, mac: str) -> None:
        self.noted.append("cancel")


class Reading:
    def __init__(self, stage: WorkerStage) -> None:
        self.stage, self.inboxes = stage, stage.resources.inboxes
        self.turns = Turns(self.inboxes)
        self.owned = {0: stage.shard}
        self.reader = InboxReader(self.inboxes, lambda: self.owned, self.turns, self.turns)  # type: ignore[arg-type]

    async def post(self, *events: Any) -> None:
        for event in events:
            await self.inboxes.to_shard(0, event)
        await elapse(1)

    async def left(self) -> int:
        return int(await self.stage.resources.store.client.xlen(self.stage.resources.store.keys.inbox(0)))


@pytest.fixture
async def reading(stage: WorkerStage) -> AsyncIterator[Reading]:
    one = Reading(stage)
    async with running("inboxes", lambda: keep_running("inboxes", one.reader.run, one.reader.backoff)):
        yield one


def utterance(turn: str) -> UtteranceEvent:
    return UtteranceEvent(device=MAC, session="s1", turn=turn, text="hi")


async def test_events_of_a_device_are_handled_in_order_and_then_discarded(reading: Reading) -> None:
    await reading.post(
        utterance("t1"),
        AnswerDoneEvent(device=MAC, session="s1", turn="t1"),
        AnswerInterruptedEvent(device=MAC, session="s1", turn="t1", spoken=1),
        SessionSilentEvent(device=MAC, session="s1", reason="idle"),
    )
    assert reading.turns.noted == [
        "begin t1",
        "spoken t1",
        "interrupt t1",
        "spoken t1",
        "goodbye idle",
        "cancel",
    ]
    assert await reading.left() == 0


async def test_the_entry_of_a_turn_that_runs_stays(reading: Reading) -> None:
    reading.turns.keeps = True
    await reading.post(utterance("t1"))
    assert await reading.left() == 1


async def test_what_fails_for_a_while_is_tried_again_before_what_came_later(reading: Reading) -> None:
    reading.turns.failures = [Unavailable("away")] * 3
    await reading.post(utterance("t1"), utterance("t2"))
    await elapse(5)
    assert reading.turns.noted == ["begin t1", "begin t2"]


async def test_what_fails_for_long_is_given_up(reading: Reading) -> None:
    reading.turns.failures = [Unavailable("away")] * 30
    await reading.post(utterance("t1"))
    await elapse(60)
    assert 3 < 30 - len(reading.turns.failures) < 30 and reading.turns.noted == []


async def test_an_entry_of_a_lost_shard_stays_for_its_next_owner(reading: Reading) -> None:
    reading.turns.failures = [Fenced("another owner")]
    await reading.post(utterance("t1"))
    await elapse(5)
    assert reading.turns.noted == [] and await reading.left() == 1
    assert reading.reader.positions()[0] != "0"


async def test_reading_goes_on_after_redis_was_away_and_what_nobody_understands_is_discarded(reading: Reading) -> None:
    reading.stage.connection.fault = RedisConnectionError("away")
    await elapse(1)
    reading.stage.connection.fault = None
    store = reading.stage.resources.store
    await store.client.xadd(store.keys.inbox(0), {"m": "{}"})
    await reading.post(utterance("t1"))
    await elapse(10)
    assert reading.turns.noted == ["begin t1"] and await reading.left() == 0


async def test_a_worker_without_shards_reads_nothing(reading: Reading) -> None:
    reading.owned.clear()
    await elapse(2)
    await reading.post(utterance("t1"))
    assert reading.turns.noted == [] and await reading.left() == 1
