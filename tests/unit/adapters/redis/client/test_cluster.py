"""Redirections between nodes on several hosts; tests/integration/redis has the rest, over real servers."""

from typing import Any, cast

import pytest
from redis.exceptions import AskError, ClusterError, MovedError

from fleet.adapters.redis.client.cluster import ClusterClient
from fleet.adapters.redis.client.slots import Place, SlotMap
from fleet.adapters.redis.client.url import parse_redis_url


class Slots:
    """A map that names one node until a slot moves; a node is its place."""

    def __init__(self) -> None:
        self.moved: dict[int, Place] = {}

    async def ready(self) -> None:
        return

    def owner(self, key: str) -> Place:
        return "a", 1

    def node(self, place: Place) -> Place:
        return place

    def move(self, slot: int, place: Place) -> None:
        self.moved[slot] = place


class Nodes:
    """Redirect in the given ways, one after the other, then answer."""

    def __init__(self, *redirections: Exception) -> None:
        self.slots, self.redirections = Slots(), list(redirections)
        self.asked: list[tuple[Place, bool]] = []

    async def send(self, node: Any, asking: bool) -> str:
        self.asked.append((node, asking))
        if self.redirections:
            raise self.redirections.pop(0)
        return "answer"

    async def run(self) -> str:
        client = ClusterClient(parse_redis_url("redis+cluster://a:1", None), 1, 1.0)
        client._slots = cast("SlotMap", self.slots)
        return await client._direct("key", self.send)


@pytest.mark.parametrize(("target", "place"), [("b:2", ("b", 2)), (":2", ("a", 2))])
async def test_a_slot_that_is_moving_is_asked_for_at_its_target_and_stays_where_it_was(
    target: str, place: Place
) -> None:
    nodes = Nodes(AskError(f"7 {target}"))
    assert await nodes.run() == "answer"
    assert nodes.asked == [(("a", 1), False), (place, True)] and nodes.slots.moved == {}


@pytest.mark.parametrize(("target", "place"), [("b:2", ("b", 2)), (":2", ("a", 2))])
async def test_a_slot_that_has_moved_is_remembered(target: str, place: Place) -> None:
    nodes = Nodes(MovedError(f"7 {target}"))
    assert await nodes.run() == "answer"
    assert nodes.asked == [(("a", 1), False), (place, False)] and nodes.slots.moved == {7: place}


async def test_a_slot_may_move_on_while_it_is_looked_for() -> None:
    nodes = Nodes(AskError("7 b:2"), MovedError("7 c:3"))
    assert await nodes.run() == "answer"
    assert nodes.asked[1:] == [(("b", 2), True), (("c", 3), False)]


async def test_a_command_is_not_redirected_for_ever() -> None:
    with pytest.raises(ClusterError, match="too often"):
        await Nodes(*[MovedError("7 b:2")] * 100).run()
