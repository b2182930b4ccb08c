"""What the store makes of its client's answers; tests/integration/redis has the rest, over real servers too."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from redis.exceptions import ResponseError

from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import Fenced, Unavailable
from tests.support.memory_redis import MemoryRedis
from tests.support.memory_store import MemoryClient, memory_client, memory_store

KEYS = ["macs", "minima", "default", "version", "log"]
REVOKE = ["revoke", "aa:bb:cc:dd:ee:ff", 0, 10, 10]
"""Answers 1 if that is new, else 0."""


class ReplicatedClient(MemoryClient):
    """A client of a server that has a replica, until a test takes it away."""

    acknowledged = 1
    replicated = True
    after: tuple[bool, int] | None = None
    """Whether there is a replica after the next call, and how many attempts of it fail."""

    async def fcall_saved(self, function: str, keys: Sequence[str], args: Sequence[str]) -> tuple[Any, int]:
        if self.after is not None:
            self.replicated, failed = self.after
            self.retries.faults += failed
        return await self.execute_command("FCALL", function, len(keys), *keys, *args), self.acknowledged

    async def replication(self, key: str) -> Mapping[str, Any]:
        return {"slave0": {"state": "online", "offset": 7}} if self.replicated else {}


async def replicated() -> tuple[Store, ReplicatedClient]:
    client = memory_client(MemoryRedis())
    client.__class__ = ReplicatedClient
    assert isinstance(client, ReplicatedClient)
    store = Store(client, client, 1)
    await store.load_functions()
    return store, client


async def revoke(store: Store) -> tuple[list[str], bool]:
    return await store.call_saved("fleet_access", KEYS, REVOKE)


async def test_what_a_replica_has_is_saved() -> None:
    store, _ = await replicated()
    assert await revoke(store) == (["1"], True)


async def test_without_replicas_there_is_nothing_to_wait_for() -> None:
    store, client = await replicated()
    client.replicated = client.acknowledged = False
    assert await revoke(store) == (["1"], True)


@pytest.mark.parametrize(
    ("replica", "failed", "saved"),
    [(True, 0, False), (False, 0, False), (True, 1, False), (False, 1, True)],
)
async def test_what_no_replica_has_is_saved_only_where_another_server_answered_that_has_none(
    replica: bool, failed: int, saved: bool
) -> None:
    store, client = await replicated()
    client.acknowledged, client.after = 0, (replica, failed)
    assert await revoke(store) == (["1"], saved)


async def test_after_a_write_that_no_replica_has_the_replicas_are_looked_for_again() -> None:
    store, client = await replicated()
    client.acknowledged, client.after = 0, (False, 0)
    await revoke(store)
    assert await revoke(store) == (["0"], True), "the replica is gone"


async def test_a_server_that_lost_the_functions_gets_them_again() -> None:
    store = await memory_store()
    await store.client.execute_command("FUNCTION FLUSH")
    assert await store.call("fleet_access", KEYS, REVOKE) == ["1"]


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (ResponseError("FENCED worker 2"), Fenced, "FENCED worker 2"),
        (ResponseError("OOM command not allowed"), Unavailable, "Redis refused: OOM"),
        (TimeoutError(), Unavailable, "no answer in time"),
        (OSError("no route"), Unavailable, "Redis: no route"),
    ],
)
async def test_the_clients_errors_become_ours_and_say_why(fault: Exception, error: type[Exception], words: str) -> None:
    async def fail() -> None:
        raise fault

    with pytest.raises(error, match=words):
        await (await memory_store()).ask(fail())
