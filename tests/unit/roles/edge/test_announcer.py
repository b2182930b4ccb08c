from redis.exceptions import ConnectionError as RedisConnectionError

from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.ground.tasks import running
from fleet.roles.edge.announcer import Announcer
from tests.support.memory_store import connection_of, memory_store
from tests.support.virtual_time import elapse


class Load:
    load = 0

    def describe(self) -> EdgeRecord:
        return EdgeRecord("e1", "h", 8884, self.load)


async def test_an_edge_is_announced_while_it_runs_and_not_after_it() -> None:
    edges, load = Edges(await memory_store()), Load()
    announcer = Announcer(edges, load.describe)
    async with running("announcer", announcer.run):
        await announcer.announced.wait()
        await elapse(60)
        assert await edges.live() == [EdgeRecord("e1", "h", 8884, 0)]
        load.load = 5
        announcer.announce_now()
        await elapse(0.1)
        assert (await edges.live())[0].load == 5
    assert await edges.live() == []


async def test_an_edge_is_announced_again_after_redis_was_away() -> None:
    store = await memory_store()
    edges, connection = Edges(store), connection_of(store)
    async with running("announcer", Announcer(edges, Load().describe).run):
        await elapse(1)
        connection.fault = RedisConnectionError("away")
        await elapse(30)
        connection.fault = None
        assert await edges.live() == [], "what was announced has expired"
        await elapse(3)
        assert len(await edges.live()) == 1
        connection.fault = RedisConnectionError("away")
