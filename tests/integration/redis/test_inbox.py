import asyncio

import pytest

from fleet.adapters.redis import keys
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.wire.edge_messages import AnswerDoneEvent, CloseSessionCommand


async def test_a_shards_entry_stays_until_it_is_discarded(store: Store, mac: str) -> None:
    boxes, message = Inboxes(store), AnswerDoneEvent(device=mac, session="s", turn="t")
    await boxes.to_shard(3, message)
    entries = await boxes.read_shards({3: "0"})
    assert [entry.event for entry in entries] == [message]
    assert len(await boxes.read_shards({3: "0"})) == 1
    await boxes.discard(entries)
    assert await boxes.read_shards({3: "0"}) == []


async def test_an_entry_of_an_unknown_kind_is_marked_and_can_be_discarded(store: Store) -> None:
    boxes = Inboxes(store)
    await store.client.xadd(store.keys.inbox(3), {"m": '{"kind":"unheard_of"}'})
    entries = await boxes.read_shards({3: "0"})
    assert [entry.event for entry in entries] == [None]
    await boxes.discard(entries)


async def test_an_edge_reads_its_inbox_in_order(store: Store, mac: str) -> None:
    boxes = Inboxes(store)
    sent = [CloseSessionCommand(device=mac, session=str(number)) for number in range(5)]
    for message in sent:
        await boxes.to_edge("e1", message)
    got = []
    async with asyncio.timeout(240):
        async for message in boxes.read_edge("e1"):
            got.append(message)
            if len(got) == len(sent):
                break
    assert got == sent


async def test_reading_an_edges_inbox_again_continues_where_it_stopped(store: Store, mac: str) -> None:
    boxes = Inboxes(store)
    for number in range(2):
        await boxes.to_edge("e1", CloseSessionCommand(device=mac, session=str(number)))
    async with asyncio.timeout(240):
        first = await anext(boxes.read_edge("e1"))
        second = await anext(boxes.read_edge("e1"))
    assert (first.session, second.session) == ("0", "1")


@pytest.mark.usefixtures("patient")
async def test_inboxes_are_bounded(store: Store, mac: str) -> None:
    boxes = Inboxes(store)
    async with asyncio.TaskGroup() as group:
        for number in range(keys.INBOX_LENGTH + 500):
            group.create_task(boxes.to_edge("e1", CloseSessionCommand(device=mac, session=str(number))))
    assert await store.client.xlen(keys.edge_inbox("e1")) < keys.INBOX_LENGTH + 200
    assert 0 < await store.client.ttl(keys.edge_inbox("e1")) <= keys.EDGE_INBOX_SECONDS


async def test_live_edges_are_listed_and_dead_ones_forgotten(store: Store) -> None:
    edges, one = Edges(store), EdgeRecord("e1", "host", 8884, 3, draining=True)
    await edges.announce(one)
    await edges.announce(EdgeRecord("e2", "", 8885, 0))
    await store.client.delete(keys.edge("e2"))
    assert await edges.live() == [one]
    assert await store.client.smembers(keys.EDGES) == {"e1"}
    await edges.retire("e1")
    assert await edges.live() == []
