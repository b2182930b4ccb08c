import asyncio

import pytest

from fleet.adapters.redis.client import client
from fleet.adapters.redis.sessions.calls import CallBegun, CallKnown, CallTable
from fleet.adapters.redis.shards.inbox import Inboxes, StreamEntry
from fleet.adapters.redis.shards.leases import Leases
from fleet.wire.edge_messages import AnswerDoneEvent
from tests.support.redis_sentinel import SentinelSet
from tests.support.redis_store import opened

LIMIT = 240
pytestmark = pytest.mark.usefixtures("patient")


async def until_read(boxes: Inboxes, turn: str) -> StreamEntry:
    last = "0"
    while True:
        for entry in await boxes.read_shards({3: last}):
            last = entry.id
            if isinstance(entry.event, AnswerDoneEvent) and entry.event.turn == turn:
                return entry


async def test_everything_goes_on_after_a_failover(
    own_sentinel: SentinelSet, mac: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(own_sentinel.url) as store:
        calls, leases, boxes = CallTable(store), Leases(store, "w", 60), Inboxes(store)
        owner = await leases.take(3)
        begun = await calls.begin(mac, "t:c", 60)
        assert isinstance(begun, CallBegun)
        async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
            reader = group.create_task(until_read(boxes, "after"))
            await boxes.to_shard(3, AnswerDoneEvent(device=mac, session="s", turn="before"))
            while not await store.client.wait(1, 1000):
                pass
            await asyncio.to_thread(own_sentinel.kill_primary)
            # The server that takes over has no replica that could acknowledge.
            monkeypatch.setattr(client, "WAIT_MS", 50)
            # All of these meet the failover, and none of them fails.
            again = group.create_task(calls.begin(mac, "t:c", 60))
            renewed = group.create_task(leases.take(3))
            fresh = group.create_task(calls.begin(mac, "t:d", 60))
            group.create_task(boxes.to_shard(3, AnswerDoneEvent(device=mac, session="s", turn="after")))
        assert again.result() == CallKnown(begun.id, "pending", "")
        assert renewed.result() == owner
        assert isinstance(fresh.result(), CallBegun)
        assert reader.result().shard == 3
        assert await calls.complete(mac, str(begun.id), "answer")
        place = store.client.connection_pool.master_address
        assert place == ("127.0.0.1", own_sentinel.replica.port)


async def test_a_primary_that_was_replaced_and_came_back_is_left_alone(own_sentinel: SentinelSet, mac: str) -> None:
    async with opened(own_sentinel.url) as store:
        leases = Leases(store, "w", 60)
        await leases.take(3)
        # A failover that nobody was forced to: the old primary lives on, as a replica that refuses to write.
        await store.client.sentinels.sentinel_failover("fleet")
        async with asyncio.timeout(LIMIT):
            while store.client.connection_pool.master_address[1] != own_sentinel.replica.port:
                assert await leases.take(3) is not None
                await store.client.connection_pool.disconnect(inuse_connections=False)
            assert isinstance(await CallTable(store).begin(mac, "t:c", 60), CallBegun)
