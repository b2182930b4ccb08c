import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from fleet.adapters.redis.shards.shard_counts import ShardCounter
from fleet.ground.metrics import broker, calls
from fleet.ground.metrics.gauge import GaugeMetric
from fleet.ground.tasks import running
from fleet.roles.worker.ownership.shard_gauges import PAUSE_SECONDS, ShardGauges
from fleet.wire.edge_messages import AnswerDoneEvent
from tests.support.virtual_time import elapse
from tests.support.worker_stage import MAC, WorkerStage

EXPORTED = (broker.devices, calls.pending, broker.inbox_lag, broker.shards, broker.disconnected)


class Gauges:
    """The gauges of a worker that owns a shard with one device, which has a pending call and an unread entry."""

    def __init__(self, stage: WorkerStage) -> None:
        self.stage = stage
        self.positions = {0: "0"}
        self.owned: dict[int, Any] = {number: SimpleNamespace(connected=number > 0) for number in range(3)}
        counter = ShardCounter(stage.resources.store)
        self.gauges = ShardGauges(counter, lambda: self.owned, lambda: self.positions)

    async def write(self) -> str:
        """Write an entry; return its id."""
        inboxes = self.stage.resources.inboxes
        await inboxes.to_shard(0, AnswerDoneEvent(device=MAC, session="s", turn="t"))
        return (await inboxes.read_shards({0: "0"}))[-1].id


def values() -> list[float | None]:
    return [exported(metric) for metric in EXPORTED]


def exported(metric: GaugeMetric) -> float | None:
    return metric.read().get(())


@pytest.fixture
async def gauges(stage: WorkerStage) -> AsyncIterator[Gauges]:
    one = Gauges(stage)
    await stage.resources.calls.begin(MAC, "t1:c1", 60)
    with one.gauges.shown():
        yield one


async def test_they_are_exported_while_the_worker_runs_and_not_afterwards(gauges: Gauges) -> None:
    assert values() == [0, 0, 0, 3, 1], "nothing was counted yet"
    async with running("gauges", gauges.gauges.run):
        await elapse(0.1)
        assert values() == [1, 1, 0, 3, 1]
        gauges.owned = {}
        assert values() == [1, 1, 0, 0, 0]


async def test_a_worker_that_is_gone_exports_none(stage: WorkerStage) -> None:
    with Gauges(stage).gauges.shown():
        pass
    assert values() == [None] * len(EXPORTED)


async def test_they_are_counted_again_and_again(gauges: Gauges) -> None:
    async with running("gauges", gauges.gauges.run):
        await elapse(0.1)
        await gauges.stage.connect(online=False, epoch=2)
        assert exported(broker.devices) == 1
        await elapse(PAUSE_SECONDS)
        assert exported(broker.devices) == 0


async def test_they_keep_their_values_while_redis_is_away_and_are_counted_soon_after(gauges: Gauges) -> None:
    async with running("gauges", gauges.gauges.run):
        await elapse(0.1)
        gauges.stage.connection.fault = RedisConnectionError("away")
        await elapse(10_000)
        assert exported(broker.devices) == 1
        gauges.stage.connection.fault = None
        await gauges.stage.connect(online=False, epoch=2)
        await elapse(PAUSE_SECONDS + 1)
        assert exported(broker.devices) == 0


async def test_the_lag_is_the_age_of_the_oldest_entry_that_nobody_has_read(
    gauges: Gauges, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = await gauges.write()
    written = int(entry.partition("-")[0]) / 1000
    monkeypatch.setattr(time, "time_ns", lambda: round((written + 7) * 1e9))
    async with running("gauges", gauges.gauges.run):
        await elapse(0.1)
        assert exported(broker.inbox_lag) == pytest.approx(7, abs=0.01)
        monkeypatch.setattr(time, "time_ns", lambda: round((written - 7) * 1e9))
        assert exported(broker.inbox_lag) == 0, "the clock of Redis is ahead"
        monkeypatch.setattr(time, "time_ns", lambda: round((written + 7) * 1e9))
        gauges.positions = {0: entry}
        assert exported(broker.inbox_lag) == 0, "it was read since the count"
        gauges.positions = {}
        assert exported(broker.inbox_lag) == 0, "its shard is another worker's"
