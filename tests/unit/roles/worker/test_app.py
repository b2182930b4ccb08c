"""A whole worker on a Redis in memory; sessions that are connected at once stand for the broker."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from fleet.adapters.net.mqtt.session import Reading
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.ground.tasks import running
from fleet.roles.worker import plugin_counts
from fleet.roles.worker.app import Worker
from fleet.roles.worker.ownership import owner_loss, shard
from fleet.roles.worker.plugin_counts import FILTER, PREFIX
from tests.support.virtual_time import elapse
from tests.support.worker_stage import MAC, WorkerStage

BOOT = b'{"epoch": 5}'


class Session:
    """A session that is connected until the worker ends."""

    made: list["Session"]

    def __init__(self, *_: Any, reading: Reading, **__: Any) -> None:
        self.reading, self.connected = reading, False
        self.made.append(self)

    async def run(self, *ready: Callable[[], None]) -> None:
        self.connected = True
        for be_ready in ready:
            be_ready()
        await asyncio.Event().wait()

    def publish(self, topic: str, payload: bytes) -> None:
        return

    async def drain(self, seconds: float) -> None:
        return


@pytest.fixture
async def worker(stage: WorkerStage, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Worker]:
    """A worker that owns the only shard: the stage has given its lease up."""
    Session.made = []
    stage.redis.run("DEL", stage.resources.store.keys.own(0))
    for module in (plugin_counts, owner_loss, shard):
        monkeypatch.setattr(module, "MqttSession", Session)
    one = Worker(stage.resources, "w", MqttAddress("127.0.0.1", 1))
    async with running("worker", one.run):
        await elapse(5)
        yield one


def counting() -> list[Session]:
    return [session for session in Session.made if session.reading.filters == [FILTER]]


async def test_a_worker_is_ready_when_its_shards_are_connected(worker: Worker) -> None:
    assert worker.ready and worker.connected and worker.settled
    for session in Session.made:
        session.connected = False
    assert not worker.ready and not worker.connected and not worker.settled


async def test_the_owner_of_the_first_shard_counts_what_the_plugin_refuses(worker: Worker) -> None:
    [owned] = worker._shards.owned.values()
    arrived = worker.expect(MAC, b'{"online": true, "epoch": 7}', asyncio.Future())
    await worker.receive(owned, "presence", MAC, arrived)
    await elapse(5)
    assert counting() == [], "no broker with the plugin was seen"
    await worker.receive(owned, "boot", "", BOOT)
    await elapse(5)
    [session] = counting()
    for count in (b"1", b"5"):
        await session.reading.on_message(f"{PREFIX}floods", count)
    assert worker.counts == {"broker: floods": 4}


async def test_new_devices_are_counted(worker: Worker) -> None:
    assert worker.new_devices == 0
