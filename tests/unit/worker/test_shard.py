import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from fleet.errors import Unavailable
from fleet.link.mqtt import MqttSession
from fleet.store.owner import Owner
from fleet.tasks import running
from fleet.wire.topics import presence_topic
from fleet.wire.words import Farewell
from fleet.worker.shard import Shard

MAC = "aa:bb:cc:dd:ee:ff"


class SlowSession:
    """A session that is given what the broker kept before it may publish."""

    def __init__(self, shard: Shard) -> None:
        self.shard, self.may_publish = shard, asyncio.Event()
        self.published: list[bytes] = []
        self.handling: list[asyncio.Task[None]] = []

    @property
    def connected(self) -> bool:
        return self.may_publish.is_set()

    def publish(self, topic: str, payload: bytes) -> None:
        if not self.connected:
            raise Unavailable("not connected")
        self.published.append(payload)

    async def run(self, on_ready: Callable[[], None]) -> None:
        async with asyncio.TaskGroup() as group:
            for payload in (b"1", b"2"):
                self.handling.append(group.create_task(self.shard.receive(presence_topic(MAC), payload)))
            await self.may_publish.wait()
            on_ready()
            await asyncio.Event().wait()


def slow(shard: Shard) -> MqttSession:
    return cast("MqttSession", cast("Any", SlowSession(shard)))


async def always(shard: Shard) -> bool:
    return True


async def test_what_the_broker_kept_is_handled_in_order_once_it_can_be_answered() -> None:
    handled: list[bytes] = []

    async def receive(shard: Shard, kind: str, mac: str, payload: bytes) -> None:
        shard.tell(mac, Farewell(payload.decode()))
        handled.append(payload)

    sessions: list[SlowSession] = []

    def connect(shard: Shard) -> MqttSession:
        sessions.append(SlowSession(shard))
        return cast("MqttSession", cast("Any", sessions[-1]))

    shard = Shard(0, Owner("w", "1"), connect, receive, always)
    async with asyncio.timeout(10), running("shard", shard.run):
        while not sessions or not sessions[0].handling:
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        assert handled == []
        sessions[0].may_publish.set()
        await asyncio.wait(sessions[0].handling)
        assert handled == [b"1", b"2"]
        assert len(sessions[0].published) == 2


async def test_without_a_connection_nothing_is_sent() -> None:
    async def receive(shard: Shard, kind: str, mac: str, payload: bytes) -> None:
        return

    shard = Shard(0, Owner("w", "1"), slow, receive, always)
    with pytest.raises(Unavailable):
        shard.tell(MAC, Farewell("s"))
