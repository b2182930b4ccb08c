"""The record of an operator's call, which keeps an announcement from being delivered twice."""

import pytest

from fleet.adapters.redis.sessions.calls import CallBegun, CallingOperator, OperatorEnd
from fleet.roles.worker.announcements.once import deliver_once
from fleet.roles.worker.calls.device_calls import Outcome
from tests.support.announcement_desk import Desk
from tests.support.worker_stage import MAC, WorkerStage


class Work:
    """The delivery, which may not be begun."""

    def __init__(self) -> None:
        self.begun = 0

    async def __call__(self) -> Outcome:
        self.begun += 1
        return Outcome("ok", "notify: played")


def end_of(stage: WorkerStage) -> OperatorEnd:
    return OperatorEnd(stage.shard.owner, "call-1", "1-0")


async def test_one_that_has_ended_is_not_begun_again(stage: WorkerStage) -> None:
    await Desk(stage).put("call-1")
    work = Work()
    first = await deliver_once(stage.resources.calls, MAC, end_of(stage), work)
    again = await deliver_once(stage.resources.calls, MAC, end_of(stage), work)
    assert (first, again.status, work.begun) == (Outcome("ok", "notify: played"), "not_sent", 1)


@pytest.mark.parametrize("outcome", [Outcome("ok", "notify: cut short"), Outcome("unknown", "it did not say")])
async def test_one_whose_worker_died_after_the_delivery_ends_as_the_record_says(
    stage: WorkerStage, outcome: Outcome
) -> None:
    await Desk(stage).put("call-1")
    calls, work = stage.resources.calls, Work()
    begun = await calls.begin(MAC, "operator:call-1", 60, CallingOperator(stage.shard.owner, "call-1"))
    assert isinstance(begun, CallBegun)
    assert await calls.complete(MAC, str(begun.id), outcome.write())
    assert await deliver_once(calls, MAC, end_of(stage), work) == outcome
    assert work.begun == 0
