from typing import Any, cast

from fleet.store.edges import EdgeRecord, Edges
from fleet.worker.directory import EdgeDirectory


class Announced:
    def __init__(self, *edges: EdgeRecord) -> None:
        self.edges = list(edges)

    async def live(self) -> list[EdgeRecord]:
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


async def test_an_edge_is_gone_only_once_it_was_looked_for() -> None:
    one = EdgeDirectory(cast("Edges", cast("Any", Announced())), 1)
    assert not one.gone("a")
    await one.refresh()
    assert one.gone("a")
