import asyncio
from dataclasses import replace
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from fleet.adapters.redis.sessions.calls import MOST_PENDING, CallingTurn
from fleet.core.controls import SENT
from fleet.core.rates import Rate
from fleet.ground.errors import Fenced, Overloaded, Unavailable
from fleet.roles.worker.calls.call_terms import CallTerms
from fleet.roles.worker.calls.device_calls import DeviceCalls, Outcome
from fleet.wire.messages import CallToolCommand, ResponseEvent
from tests.support.virtual_time import elapse
from tests.support.worker_stage import MAC, WorkerStage

COMMAND = CallToolCommand(0, "self.lamp.on", {"level": 3}, "s1")
DONE: dict[str, Any] = {"content": [{"type": "text", "text": "true"}]}
FAILED: dict[str, Any] = {"content": [{"type": "text", "text": "no bulb"}], "isError": True}


def terms(call_id: str = "c1", **more: Any) -> CallTerms:
    return CallTerms("t1", call_id, 10.0, **more)


@pytest.fixture
async def calls(stage: WorkerStage) -> DeviceCalls:
    """Calls of a turn that runs."""
    await stage.open("s1")
    await stage.begin("t1", "light")
    return DeviceCalls(stage.resources.calls, stage.resources.reports, Rate(1, 5), stage.counts)


def requests(stage: WorkerStage) -> list[Any]:
    return [message["payload"] for message in stage.sent() if message["type"] == "mcp"]


async def answer(stage: WorkerStage, calls: DeviceCalls, result: Any = DONE, at: int = -1) -> bool:
    async with asyncio.timeout(5):
        while not requests(stage):
            await elapse(0.01)
    number = str(requests(stage)[at]["id"])
    return await calls.answer(stage.shard, MAC, ResponseEvent(number, result))


async def test_a_call_is_published_once_and_has_the_devices_answer(stage: WorkerStage, calls: DeviceCalls) -> None:
    async with asyncio.TaskGroup() as group:
        called = group.create_task(calls.call(stage.shard, MAC, COMMAND, terms()))
        assert await answer(stage, calls)
    assert called.result() == Outcome("ok", "true")
    [request] = requests(stage)
    assert (request["method"], request["params"]["name"]) == ("tools/call", "self.lamp.on")
    assert not await answer(stage, calls), "its second answer belongs to no call"
    assert await calls.call(stage.shard, MAC, COMMAND, terms()) == Outcome("ok", "true")
    assert len(requests(stage)) == 1, "what was done is not sent again"


async def test_what_another_worker_began_is_awaited_and_not_sent_again(stage: WorkerStage, calls: DeviceCalls) -> None:
    earlier = await stage.resources.calls.begin(MAC, "t1:c1", 10, CallingTurn(stage.shard.owner, "t1"))
    async with asyncio.TaskGroup() as group:
        called = group.create_task(calls.call(stage.shard, MAC, COMMAND, terms()))
        await elapse(1)
        assert not called.done()
        await calls.answer(stage.shard, MAC, ResponseEvent(str(earlier.id), DONE))  # type: ignore[union-attr]
    assert called.result() == Outcome("ok", "true")
    assert requests(stage) == []


async def test_a_call_that_is_made_twice_at_once_is_sent_once_and_both_get_its_answer(
    stage: WorkerStage, calls: DeviceCalls
) -> None:
    async with asyncio.TaskGroup() as group:
        both = [group.create_task(calls.call(stage.shard, MAC, COMMAND, terms())) for _ in range(2)]
        await elapse(1)
        assert await answer(stage, calls)
    assert [one.result() for one in both] == [Outcome("ok", "true")] * 2
    assert len(requests(stage)) == 1


async def test_a_call_without_an_answer_is_unknown_and_never_repeated(stage: WorkerStage, calls: DeviceCalls) -> None:
    begun = asyncio.get_running_loop().time()
    assert (await calls.call(stage.shard, MAC, COMMAND, terms())).status == "unknown"
    assert 10 <= asyncio.get_running_loop().time() - begun < 11
    assert (await calls.call(stage.shard, MAC, COMMAND, terms())).status == "unknown"
    assert not await answer(stage, calls), "it comes too late"
    assert len(requests(stage)) == 1


async def test_a_device_that_disconnects_ends_its_calls_at_once(stage: WorkerStage, calls: DeviceCalls) -> None:
    begun = asyncio.get_running_loop().time()
    async with asyncio.TaskGroup() as group:
        called = group.create_task(calls.call(stage.shard, MAC, COMMAND, terms()))
        await elapse(0.1)
        calls.disconnect(MAC)
    assert called.result().status == "unknown"
    assert asyncio.get_running_loop().time() - begun < 1


@pytest.mark.parametrize("end", ["disconnect", "reconnect"])
async def test_a_device_that_leaves_to_carry_a_call_out_has_answered(
    stage: WorkerStage, calls: DeviceCalls, end: str
) -> None:
    async with asyncio.TaskGroup() as group:
        called = group.create_task(calls.call(stage.shard, MAC, COMMAND, terms(leaves=True)))
        await elapse(0.1)
        getattr(calls, end)(MAC)
    assert called.result().status == "ok"
    assert (await calls.call(stage.shard, MAC, COMMAND, terms(leaves=True))).status == "ok"


async def test_an_answer_to_what_only_fails_with_one_is_a_failure(stage: WorkerStage, calls: DeviceCalls) -> None:
    async with asyncio.TaskGroup() as group:
        called = group.create_task(calls.call(stage.shard, MAC, COMMAND, terms(fails_if_answered=True)))
        await answer(stage, calls)
    assert called.result().status == "error"


async def test_a_control_counts_as_done_when_it_was_sent_and_its_failure_is_reported(
    stage: WorkerStage, calls: DeviceCalls
) -> None:
    assert (await calls.call(stage.shard, MAC, COMMAND, terms(control=True))).status == "ok"
    assert len(requests(stage)) == 1
    await answer(stage, calls, FAILED)
    await elapse(0.1)
    [report] = (await stage.resources.conversations.context(MAC, 10)).reports
    assert "self.lamp.on" in report.text and "no bulb" in report.text


@pytest.mark.parametrize("fault", [Unavailable("away"), Overloaded("full")])
@pytest.mark.parametrize("control", [False, True])
async def test_what_could_not_be_published_was_not_sent(
    stage: WorkerStage, calls: DeviceCalls, fault: Exception, control: bool
) -> None:
    stage.session.fault = fault
    assert (await calls.call(stage.shard, MAC, COMMAND, terms(control=control))).status == "not_sent"
    stage.session.fault = None
    assert (await calls.call(stage.shard, MAC, COMMAND, terms(control=control))).status == "not_sent"
    assert requests(stage) == []


async def test_a_worker_that_may_have_lost_the_shard_sends_nothing(stage: WorkerStage, calls: DeviceCalls) -> None:
    stage.connection.back = 1.0
    asyncio.get_running_loop().call_later(0.5, stage.shard.lease.end)
    with pytest.raises(Fenced):
        await calls.call(stage.shard, MAC, COMMAND, terms())
    assert requests(stage) == []


async def test_without_redis_nothing_is_sent(stage: WorkerStage, calls: DeviceCalls) -> None:
    stage.connection.fault = RedisConnectionError("away")
    with pytest.raises(Unavailable):
        await calls.call(stage.shard, MAC, COMMAND, terms())
    assert requests(stage) == []


async def test_an_outdated_turn_and_an_offline_device_are_refused(stage: WorkerStage, calls: DeviceCalls) -> None:
    await stage.connect(online=False, epoch=2)
    assert (await calls.call(stage.shard, MAC, COMMAND, terms())).status == "not_sent"
    await stage.connect(epoch=3)
    assert (await calls.call(stage.shard, MAC, COMMAND, CallTerms("an older turn", "c1", 10.0))).status == "not_sent"
    journal = await stage.resources.conversations.journal(MAC)
    assert journal
    await stage.resources.conversations.remember(stage.shard.owner, MAC, replace(journal, state="cut"), ())
    assert (await calls.call(stage.shard, MAC, COMMAND, terms())).status == "not_sent"
    assert requests(stage) == []


async def test_a_device_that_is_called_too_often_is_left_alone(stage: WorkerStage, calls: DeviceCalls) -> None:
    for number in range(5):
        await calls.call(stage.shard, MAC, COMMAND, terms(f"c{number}", control=True))
    assert (await calls.call(stage.shard, MAC, COMMAND, terms("c9"))).status == "not_sent"
    assert len(requests(stage)) == 5 and stage.counts == {"call: too often": 1}


async def test_the_answer_to_a_call_that_nobody_awaits_any_more_is_kept_and_reported(
    stage: WorkerStage, calls: DeviceCalls
) -> None:
    begun = await stage.resources.calls.begin(MAC, "t1:c1", 10, CallingTurn(stage.shard.owner, "t1"))
    failure = ResponseEvent(str(begun.id), error="no bulb", plain=True)  # type: ignore[union-attr]
    assert await calls.answer(stage.shard, MAC, failure)
    assert len((await stage.resources.conversations.context(MAC, 10)).reports) == 1
    assert await calls.call(stage.shard, MAC, COMMAND, terms()) == Outcome("error", "no bulb")


async def test_a_device_with_too_many_calls_to_do_gets_no_more(stage: WorkerStage) -> None:
    await stage.open("s1")
    await stage.begin("t1", "light")
    calls = DeviceCalls(stage.resources.calls, stage.resources.reports, Rate(100, 100), stage.counts)
    for number in range(MOST_PENDING):
        assert (await calls.call(stage.shard, MAC, COMMAND, terms(f"c{number}", control=True))).status == "ok"
    refused = await calls.call(stage.shard, MAC, COMMAND, terms("one more"))
    assert refused.for_model().startswith("error: not done, ") and "too many" in refused.text
    assert len(requests(stage)) == MOST_PENDING


async def test_an_answer_that_another_worker_took_is_the_outcome(stage: WorkerStage, calls: DeviceCalls) -> None:
    async with asyncio.TaskGroup() as group:
        called = group.create_task(calls.call(stage.shard, MAC, COMMAND, terms()))
        await elapse(1)
        another = DeviceCalls(stage.resources.calls, stage.resources.reports, Rate(1, 5), stage.counts)
        await answer(stage, another, FAILED)
    assert called.result() == Outcome("error", "no bulb")


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Outcome("ok", "true"), "true"),
        (Outcome("error", "no bulb"), "error: no bulb"),
        (Outcome("not_sent", "away"), "error: not done, away"),
        (Outcome("unknown", "no answer"), "error: unknown whether it was done, no answer"),
    ],
)
def test_the_model_reads_how_a_call_ended(outcome: Outcome, words: str) -> None:
    assert outcome.for_model() == words


async def test_every_refusal_says_that_nothing_was_done_and_why(stage: WorkerStage, calls: DeviceCalls) -> None:
    outdated = await calls.call(stage.shard, MAC, COMMAND, CallTerms("an older turn", "c1", 10.0))
    await stage.connect(online=False, epoch=2)
    offline = await calls.call(stage.shard, MAC, COMMAND, terms())
    texts = {one.for_model() for one in (outdated, offline)}
    assert len(texts) == 2 and all(text.startswith("error: not done, ") for text in texts)


async def test_a_timeout_and_a_disconnection_are_said_apart(stage: WorkerStage, calls: DeviceCalls) -> None:
    late = await calls.call(stage.shard, MAC, COMMAND, terms("c1"))
    async with asyncio.TaskGroup() as group:
        called = group.create_task(calls.call(stage.shard, MAC, COMMAND, terms("c2")))
        await elapse(0.1)
        calls.disconnect(MAC)
    assert "in time" in late.text and "disconnected" in called.result().text
    again = await calls.call(stage.shard, MAC, COMMAND, terms("c1"))
    assert again == late, "it is known how it ended"


async def test_a_control_that_another_worker_sent_counts_as_done_and_its_failure_is_reported(
    stage: WorkerStage, calls: DeviceCalls
) -> None:
    earlier = await stage.resources.calls.begin(MAC, "t1:c1", 10, CallingTurn(stage.shard.owner, "t1"))
    assert await calls.call(stage.shard, MAC, COMMAND, terms(control=True)) == Outcome("ok", SENT)
    assert requests(stage) == []
    await elapse(0.1)
    await calls.answer(stage.shard, MAC, ResponseEvent(str(earlier.id), FAILED))  # type: ignore[union-attr]
    await elapse(0.1)
    assert len((await stage.resources.conversations.context(MAC, 10)).reports) == 1


async def test_the_answer_to_a_call_that_is_awaited_needs_no_task(stage: WorkerStage, calls: DeviceCalls) -> None:
    assert not any(MAC in devices for devices in calls.awaited)
    async with asyncio.TaskGroup() as group:
        called = [group.create_task(calls.call(stage.shard, MAC, COMMAND, terms(f"c{number}"))) for number in range(2)]
        await elapse(0.1)
        assert any(MAC in devices for devices in calls.awaited) and not any(one.done() for one in called)
        numbers = [str(request["id"]) for request in requests(stage)]
        assert calls.take(MAC, ResponseEvent("12345", DONE)) is None, "nobody waits for it"
        assert calls.take(MAC, ResponseEvent(numbers[0], "true", plain=True)) is None, "its failure may be a report"
        taken = [calls.take(MAC, ResponseEvent(number, DONE)) for number in numbers]
        assert [one and await one for one in taken] == [True, True]
    assert [one.result() for one in called] == [Outcome("ok", "true")] * 2
    assert not any(MAC in devices for devices in calls.awaited)


async def test_an_answer_that_cannot_be_recorded_is_not_told(stage: WorkerStage, calls: DeviceCalls) -> None:
    async with asyncio.TaskGroup() as group:
        called = group.create_task(calls.call(stage.shard, MAC, COMMAND, terms()))
        await elapse(0.1)
        stage.connection.fault = RedisConnectionError("away")
        taken = calls.take(MAC, ResponseEvent(str(requests(stage)[0]["id"]), DONE))
        assert taken is not None
        with pytest.raises(Unavailable):
            await taken
        assert not called.done()
        stage.connection.fault = None
        assert await answer(stage, calls)
    assert called.result() == Outcome("ok", "true")
