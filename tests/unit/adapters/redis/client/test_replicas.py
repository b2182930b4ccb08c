from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

from fleet.adapters.redis.client.replicas import KNOWN_SECONDS, Replicas
from tests.support.virtual_time import elapse


class Nodes:
    """A client of two nodes, of which one has a replica."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.retries, self.batch_retries = SimpleNamespace(faults=0), SimpleNamespace(faults=0)
        self.replicas = Replicas(cast("Any", self))

    def node_name(self, key: str) -> str:
        return key[0]

    async def replication(self, key: str) -> Mapping[str, Any]:
        self.asked.append(key)
        return {"slave0": {"state": "online", "offset": 7}} if key[0] == "a" else {"slave0": {"state": "online"}}


async def test_what_is_known_of_a_node_is_known_without_asking() -> None:
    nodes = Nodes()
    assert nodes.replicas.known("a1") is None
    assert [await nodes.replicas.exist(key) for key in ("a1", "b1", "a2")] == [True, False, True]
    assert (nodes.replicas.known("a3"), nodes.replicas.known("b3"), nodes.asked) == (True, False, ["a1", "b1"])


async def test_a_fault_or_time_or_a_missing_acknowledgement_ends_what_is_known() -> None:
    nodes = Nodes()
    await nodes.replicas.exist("a")
    await elapse(KNOWN_SECONDS - 1)
    assert nodes.replicas.known("a") is True
    await elapse(1)
    assert nodes.replicas.known("a") is None
    for end in (
        lambda: vars(nodes.retries).update(faults=1),
        lambda: vars(nodes.batch_retries).update(faults=1),
        nodes.replicas.forget,
    ):
        assert await nodes.replicas.exist("a")
        assert nodes.replicas.known("a") is True
        end()
        assert nodes.replicas.known("a") is None
    assert len(nodes.asked) == 4
