from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.sessions.calls import CallTable
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.adapters.redis.shards.shard_counts import ShardCounter, ShardCounts, entry_order
from fleet.wire.edge_messages import AnswerDoneEvent


async def test_devices_calls_and_the_oldest_unread_entry_are_counted(store: Store) -> None:
    counter, mac = ShardCounter(store), "aa:bb:cc:dd:ee:ff"
    assert await counter.take({}) == await counter.take({0: "0"}) == ShardCounts()
    await Devices(store).appear(mac, online=True, epoch=1)
    await CallTable(store).begin(mac, "t1:c1", 60)
    inboxes = Inboxes(store)
    for turn in "ab":
        await inboxes.to_shard(0, AnswerDoneEvent(device=mac, session="s", turn=turn))
    first, second = await inboxes.read_shards({0: "0"})
    assert await counter.take({0: "0"}) == ShardCounts(1, 1, {0: first.id})
    assert (await counter.take({0: first.id})).unread == {0: second.id}
    assert (await counter.take({0: second.id})).unread == {}


def test_entries_are_ordered_by_time_and_then_by_number() -> None:
    assert sorted(["10-2", "9-11", "10-10", "9"], key=entry_order) == ["9", "9-11", "10-2", "10-10"]
