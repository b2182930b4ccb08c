from fleet.adapters.redis import keys
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from tests.support.virtual_time import elapse

ONE = EdgeRecord("e1", "h.example", 8884, 3)
TWO = EdgeRecord("e2", "", 8885, 0, draining=True, voices=("zf_own", "zm_yunxi"))


async def test_announcements_are_read_as_they_were_written(store: Store) -> None:
    edges = Edges(store)
    assert await edges.live() == []
    await edges.announce(TWO)
    await edges.announce(ONE)
    assert await edges.live() == [ONE, TWO]
    await edges.retire("e1")
    assert await edges.live() == [TWO]


async def test_an_edge_of_an_earlier_version_tells_no_voices(store: Store) -> None:
    edges = Edges(store)
    await edges.announce(TWO)
    await store.client.hdel(keys.edge("e2"), "voices")
    assert [one.voices for one in await edges.live()] == [()]


async def test_an_edge_that_announces_itself_no_more_is_forgotten(store: Store) -> None:
    edges = Edges(store)
    await edges.announce(ONE)
    await elapse(keys.EDGE_SECONDS - 0.1)
    await edges.announce(TWO)
    await elapse(0.2)
    assert await edges.live() == [TWO]
    assert await store.client.smembers(keys.EDGES) == {"e2"}
