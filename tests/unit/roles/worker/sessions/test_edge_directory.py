import asyncio
from typing import Any, cast

from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.roles.worker.sessions.edge_directory import EdgeDirectory


class Announced:
    def __init__(self, *edges: EdgeRecord) -> None:
        self.edges = list(edges)
        self.reads = 0

    async def live(self) -> list[EdgeRecord]:
        self.reads += 1
        return self.edges


async def directory(*edges: EdgeRecord, most: int = 10) -> EdgeDirectory:
    one = EdgeDirectory(cast("Edges", cast("Any", Announced(*edges))), most)
    await one.refresh()
    return one


async def picks(one: EdgeDirectory, count: int) -> list[str]:
    return [edge.id if (edge := one.pick()) else "" for _ in range(count)]


async def test_sessions_are_spread_over_the_least_loaded_edges() -> None:
    one = await directory(EdgeRecord("a", "h", 1, 1), EdgeRecord("b", "h", 2, 0))
    assert await picks(one, 4) == ["b", "a", "b", "a"]


async def test_a_full_edge_is_given_nothing_more() -> None:
    one = await directory(EdgeRecord("a", "h", 1, 9), EdgeRecord("b", "h", 2, 10))
    assert await picks(one, 2) == ["a", ""]


async def test_a_draining_edge_is_given_nothing() -> None:
    one = await directory(EdgeRecord("a", "h", 1, 0, draining=True))
    assert await picks(one, 1) == [""]


def test_an_edge_is_gone_when_it_was_missed_for_a_while() -> None:
    one = EdgeDirectory(cast("Edges", cast("Any", Announced())), 1)
    assert not one.is_gone("a")
    a, b = EdgeRecord("a", "h", 1, 0), EdgeRecord("b", "h", 2, 0)
    for at in range(5):
        one.update([a, b], at)
    one.update([a], 5)
    assert not one.is_gone("b")
    assert set(one.present) == {"a", "b"}
    one.update([a], 6)
    assert one.is_gone("b")
    assert one.present == ["a"]


def test_nobody_is_gone_because_the_store_was_away() -> None:
    one = EdgeDirectory(cast("Edges", cast("Any", Announced())), 1)
    for at in (0, 1, 2, 3):
        one.update([EdgeRecord("a", "h", 1, 0)], at)
    for at in (20, 21):
        one.update([], at)
        assert not one.is_gone("a")
        assert not one.reliable
    one.update([], 22)
    assert one.is_gone("a")


def test_who_has_looked_for_a_while_knows_that_an_edge_never_seen_is_gone() -> None:
    one = EdgeDirectory(cast("Edges", cast("Any", Announced())), 1)
    for at in (0, 1):
        one.update([], at)
        assert not one.is_gone("a")
    one.update([], 2)
    assert one.is_gone("a")


async def test_an_edge_that_began_since_the_last_read_is_found() -> None:
    announced = Announced()
    one = EdgeDirectory(cast("Edges", cast("Any", announced)), 10)
    await one.refresh()
    announced.edges.append(EdgeRecord("a", "h", 1, 0))
    edge = await one.choose()
    assert edge is not None and edge.id == "a"


async def test_the_list_is_not_read_for_every_device() -> None:
    announced = Announced()
    one = EdgeDirectory(cast("Edges", cast("Any", announced)), 10)
    await one.refresh()
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(one.choose()) for _ in range(1000)]
    assert {task.result() for task in asked} == {None}
    assert announced.reads == 2


async def test_sessions_that_were_just_counted_are_not_forgotten_by_another_read() -> None:
    one = await directory(EdgeRecord("a", "h", 1, 0), most=1)
    assert await one.choose()
    assert await one.choose() is None
