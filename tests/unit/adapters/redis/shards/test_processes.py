from fleet.adapters.redis import keys
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.processes import Processes, ProcessRecord
from tests.support.virtual_time import elapse

EDGE = ProcessRecord("e-1", "edge", "0.3.0", 1_800_000_000_000, "", "broker.example:1883", connected=True)
WORKER = ProcessRecord("a-1", "worker", "0.3.0", 1_700_000_000_000, "broker", "broker.example:1883")


async def test_announcements_are_read_as_they_were_written(store: Store) -> None:
    processes = Processes(store)
    assert await processes.live() == []
    await processes.announce(WORKER)
    await processes.announce(EDGE)
    assert await processes.live() == [EDGE, WORKER]
    await processes.retire("e-1")
    assert await processes.live() == [WORKER]


async def test_a_process_that_announces_itself_no_more_is_forgotten(store: Store) -> None:
    processes = Processes(store)
    await processes.announce(EDGE)
    await elapse(keys.PROCESS_SECONDS - 0.1)
    await processes.announce(WORKER)
    await elapse(0.2)
    assert await processes.live() == [WORKER]
    assert await store.client.smembers(keys.PROCESSES) == {"a-1"}
