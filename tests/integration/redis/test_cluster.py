import asyncio

import pytest
from redis.crc import key_slot

from fleet.adapters.redis.sessions.calls import CallBegun, CallKnown, CallTable
from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.adapters.redis.shards.leases import Leases
from fleet.ground.errors import Unavailable
from fleet.wire.edge_messages import AnswerDoneEvent
from tests.support.redis_cluster import ClusterSet
from tests.support.redis_store import opened
from tests.support.until import until

LIMIT = 240
ALL = range(16)


async def take_all(leases: Leases) -> list[object]:
    return [await leases.take(shard) for shard in ALL]


async def test_inboxes_of_shards_on_all_nodes_are_read_at_once(redis_cluster: ClusterSet, cluster_url: str) -> None:
    async with opened(cluster_url) as store:
        boxes = Inboxes(store)
        assert {redis_cluster.primary_of(store.keys.inbox(shard)) for shard in ALL} == {0, 1, 2}
        for shard in ALL:
            await boxes.to_shard(shard, AnswerDoneEvent(device="d", session="s", turn=str(shard)))
        entries = await boxes.read_shards(dict.fromkeys(ALL, "0"))
        assert sorted(entry.shard for entry in entries) == list(ALL)
        await boxes.discard(entries)
        async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
            waiting = group.create_task(boxes.read_shards(dict.fromkeys(ALL, "0")))
            await boxes.to_shard(7, AnswerDoneEvent(device="d", session="s", turn="late"))
        assert [entry.shard for entry in waiting.result()] == [7]


async def test_a_node_that_lost_the_functions_is_given_them_again(redis_cluster: ClusterSet, cluster_url: str) -> None:
    async with opened(cluster_url) as store:
        redis_cluster.ask(1, "FUNCTION", "FLUSH")
        assert None not in await take_all(Leases(store, "w", 60))


async def test_a_command_follows_a_slot_that_is_moving(redis_cluster: ClusterSet, cluster_url: str, mac: str) -> None:
    async with opened(cluster_url) as store:
        key = store.keys.job_fence(store.keys.shard(mac))
        slot, source = key_slot(key.encode()), redis_cluster.primary_of(key)
        target = (source + 1) % 3
        names = [redis_cluster.ask(node, "CLUSTER", "MYID") for node in range(3)]
        redis_cluster.ask(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", names[source])
        redis_cluster.ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", names[target])
        try:
            # The key is new, so only the target may make it, and only right after the word ASKING.
            async with asyncio.timeout(LIMIT):
                assert await store.call("fleet_jobs_begin", [key], [1]) == ["1"]
                saved, _ = await store.client.fcall_saved(store.functions.name("fleet_jobs_begin"), [key], ["2"])
                assert int(saved) == 1
                pipe = store.client.pipeline(transaction=False)
                pipe.append(key, "3")
                pipe.get(key)
                assert await pipe.execute() == [2, "23"]
            held = [redis_cluster.ask(node, "CLUSTER", "COUNTKEYSINSLOT", slot) for node in (source, target)]
            assert held == [0, 1]
        finally:
            for node in (source, target):
                redis_cluster.ask(node, "CLUSTER", "SETSLOT", slot, "STABLE")
            redis_cluster.flush()


async def test_one_node_that_refuses_writes_is_noticed(redis_cluster: ClusterSet, cluster_url: str) -> None:
    async with opened(cluster_url) as store:
        await store.ping_writes()
        redis_cluster.ask(1, "CONFIG", "SET", "maxmemory", "1mb")
        try:
            async with asyncio.timeout(LIMIT):
                with pytest.raises(Unavailable, match="maxmemory"):
                    while True:
                        await store.ping_writes()
                        await asyncio.sleep(0.05)
        finally:
            redis_cluster.ask(1, "CONFIG", "SET", "maxmemory", "0")


@pytest.mark.usefixtures("patient")
async def test_everything_goes_on_when_a_replica_takes_over(own_cluster: ClusterSet) -> None:
    async with opened(own_cluster.url) as store:
        leases, calls, boxes = Leases(store, "w", 60), CallTable(store), Inboxes(store)
        mac = next(
            mac
            for mac in (f"aa:bb:cc:dd:ee:{number:02x}" for number in range(256))
            if own_cluster.primary_of(store.keys.device(mac)) == 0
        )
        owners = await take_all(leases)
        assert None not in owners
        begun = await calls.begin(mac, "t:c", 60)
        assert isinstance(begun, CallBegun)
        assert (await store.client.replication(store.keys.device(mac)))["connected_slaves"] == 1

        # Asked for: the old primary answers MOVED from now on.
        await asyncio.to_thread(own_cluster.fail_over)
        async with asyncio.timeout(LIMIT):
            assert await calls.begin(mac, "t:c", 60) == CallKnown(begun.id, "pending", "")
            assert await take_all(leases) == owners
        await asyncio.to_thread(until, lambda: "master_link_status:up" in own_cluster.ask(0, "INFO", "replication"))

        # Not asked for: connections break, and the successor has to be found.
        await asyncio.to_thread(own_cluster.kill, 3)
        async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
            again = group.create_task(calls.begin(mac, "t:c", 60))
            sent = [
                group.create_task(boxes.to_shard(shard, AnswerDoneEvent(device=mac, session="s", turn="t")))
                for shard in ALL
            ]
            announced = group.create_task(Edges(store).announce(EdgeRecord("e", "h", 1, 0)))
            renewed = group.create_task(take_all(leases))
        assert again.result() == CallKnown(begun.id, "pending", "")
        assert renewed.result() == owners
        assert announced.done() and all(task.done() for task in sent)
        entries = await boxes.read_shards(dict.fromkeys(ALL, "0"))
        assert sorted(entry.shard for entry in entries if entry.event is not None) == list(ALL)
