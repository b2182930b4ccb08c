import asyncio

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.adapters.redis.shards.shard_counts import ShardCounter, entry_order
from fleet.ground.metrics import broker
from fleet.ground.tasks import running
from fleet.roles.worker.ownership.shard_gauges import ShardGauges
from fleet.wire.edge_messages import AnswerDoneEvent


async def test_the_oldest_unread_entry_of_each_shard_is_found(store: Store, mac: str) -> None:
    boxes, census = Inboxes(store), ShardCounter(store)
    for turn in ("1", "2"):
        await boxes.to_shard(3, AnswerDoneEvent(device=mac, session="s", turn=turn))
    first, second = [entry.id for entry in await boxes.read_shards({3: "0"})]
    assert (await census.take({3: "0", 4: "0"})).unread == {3: first}
    assert (await census.take({3: first})).unread == {3: second}
    assert (await census.take({3: second})).unread == {}
    assert (await census.take({})).unread == {}


async def test_an_entry_is_late_only_until_it_is_read(store: Store, mac: str) -> None:
    boxes, positions = Inboxes(store), {3: "0", 4: "0"}
    await boxes.to_shard(3, AnswerDoneEvent(device=mac, session="s", turn="1"))
    [entry] = await boxes.read_shards({3: "0"})
    figures = ShardGauges(ShardCounter(store), dict, lambda: positions)
    with figures.shown():
        async with running("census", figures.run), asyncio.timeout(240):
            while not (lag := broker.inbox_lag.read()[()]):
                await asyncio.sleep(0.005)
        assert broker.inbox_lag.read()[()] >= lag, "it waits, and nobody counts any more"
        positions[3] = entry.id
        assert broker.inbox_lag.read()[()] == 0.0
        positions[3] = "0"
        assert broker.inbox_lag.read()[()] >= lag
        del positions[3]
        assert broker.inbox_lag.read()[()] == 0.0, "the shard is another worker's now"


def test_entries_are_in_order_of_time_and_number() -> None:
    assert entry_order("0") < entry_order("9-5") < entry_order("10-2") < entry_order("10-11")
