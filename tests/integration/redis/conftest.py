"""The tests of the store run on Redis, on Valkey and on a Cluster: nothing in it may notice the difference."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import redis

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.leases import Leases
from fleet.adapters.redis.shards.owner import Owner
from fleet.wire.topics import shard_of
from tests.support.memory_store import memory_store
from tests.support.patience import REDIS, lengthen
from tests.support.process import running
from tests.support.redis_cluster import ClusterSet
from tests.support.redis_engines import EngineProcess
from tests.support.redis_sentinel import SentinelSet

MAC = "aa:bb:cc:dd:ee:ff"
SHARDS = 16
ON_VALKEY = ("test_calls.py", "test_client.py", "test_functions.py", "test_leases.py", "test_line.py")
"""Files whose tests run on Valkey by default too; `fleet up` brings it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the rest of what runs on Valkey to the long run."""
    for item in items:
        if (
            isinstance(item, pytest.Function)
            and hasattr(item, "callspec")
            and item.path.parent == Path(__file__).parent
        ):
            params = item.callspec.params
            if "valkey" in (params.get("store"), params.get("redis_engines")) and item.path.name not in ON_VALKEY:
                item.add_marker(pytest.mark.slow)


@pytest.fixture
def mac() -> str:
    return MAC


@pytest.fixture(scope="session")
def valkey_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    with running(EngineProcess("valkey", tmp_path_factory.mktemp("valkey"))) as server:
        yield server


@pytest.fixture
def valkey_url(valkey_server: EngineProcess, monkeypatch: pytest.MonkeyPatch) -> str:
    lengthen(monkeypatch, REDIS)
    with redis.Redis.from_url(valkey_server.url) as client:
        client.flushall()
        client.function_flush()
    return valkey_server.url


@pytest.fixture(scope="session")
def redis_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterSet]:
    """The Cluster of this test run; a test that kills its nodes makes its own."""
    with running(ClusterSet(tmp_path_factory.mktemp("cluster"))) as cluster:
        yield cluster


@pytest.fixture
def cluster_url(redis_cluster: ClusterSet, monkeypatch: pytest.MonkeyPatch) -> str:
    lengthen(monkeypatch, REDIS)
    redis_cluster.flush()
    return redis_cluster.url


@pytest.fixture
def _replicas_take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a call that is begun wait for a replica as long as that needs on a busy machine."""
    monkeypatch.setattr("fleet.adapters.redis.client.client.WAIT_MS", 15_000)
    monkeypatch.setattr("fleet.adapters.redis.client.store.ANSWER_SECONDS", 40.0)


@pytest.fixture
def own_sentinel(tmp_path: Path, _replicas_take_their_time: None) -> Iterator[SentinelSet]:
    with running(SentinelSet(tmp_path)) as servers:
        yield servers


@pytest.fixture
def own_cluster(tmp_path: Path, _replicas_take_their_time: None) -> Iterator[ClusterSet]:
    with running(ClusterSet(tmp_path, timeout_ms=5_000)) as cluster:
        yield cluster


@pytest.fixture(params=["redis", "valkey", "cluster"])
def redis_engines(request: pytest.FixtureRequest) -> str:
    """Addresses of an empty Redis, an empty Valkey and an empty Cluster, one after the other."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
async def server_store(redis_engines: str) -> AsyncIterator[Store]:
    store = await Store.open(redis_engines, SHARDS)
    yield store
    await store.close()


@pytest.fixture(params=["redis", "valkey", "cluster", "memory"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    """A store on each kind of server, and on the Redis in memory, which unit tests use in their place."""
    memory = request.param == "memory"
    url = "" if memory else str(request.getfixturevalue(f"{request.param}_url"))
    store = await (memory_store(shards=SHARDS) if memory else Store.open(url, SHARDS))
    yield store
    await store.close()


@pytest.fixture
async def owner(store: Store) -> Owner:
    """The lease of the device's shard."""
    owner = await Leases(store, "worker-1", 60).take(shard_of(MAC, SHARDS))
    assert owner is not None
    return owner
