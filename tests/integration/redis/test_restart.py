"""A Redis that restarts, hangs, is refused or is no primary for a while."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import redis

from fleet.adapters.redis.client import retries, store
from fleet.adapters.redis.client.store import MOST_BLOCKING_READS, MOST_COMMANDS, Store
from fleet.adapters.redis.sessions.calls import CallBegun, CallKnown, CallTable
from fleet.adapters.redis.shards import inbox
from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.adapters.redis.shards.leases import Leases
from fleet.ground.errors import ConfigError, Unavailable
from fleet.wire.edge_messages import AnswerDoneEvent, CloseSessionCommand
from tests.support.ports import LOOPBACK, free_port
from tests.support.process import running
from tests.support.redis_engines import EngineProcess
from tests.support.redis_server import RedisServer

LIMIT = 240


@pytest.fixture(autouse=True)
def _calm(patient: None) -> None:
    """Wait for a Redis as long as it needs to start. A test of a limit sets it anew."""


@pytest.fixture(params=["redis", "valkey"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EngineProcess]:
    """A server that forgets everything when it ends."""
    with running(EngineProcess(request.param, tmp_path)) as server:
        yield server


@pytest.fixture
async def forgetful(server: EngineProcess) -> AsyncIterator[Store]:
    store = await Store.open(server.url, 16)
    yield store
    await store.close()


async def test_a_command_waits_for_a_redis_that_restarts_without_its_data(
    server: EngineProcess, forgetful: Store
) -> None:
    before = await Leases(forgetful, "w", 60).take(3)
    server.kill()
    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
        lease = group.create_task(Leases(forgetful, "w", 60).take(3))
        sent = group.create_task(Inboxes(forgetful).to_edge("e", CloseSessionCommand(device="d", session="s")))
        announced = group.create_task(Edges(forgetful).announce(EdgeRecord("e", "h", 1, 0)))
        read = group.create_task(anext(Inboxes(forgetful).read_edge("e")))
        await asyncio.to_thread(server.start)
    after = lease.result()
    assert before is not None and after is not None
    assert int(after.fence) > int(before.fence)
    assert sent.done() and announced.done()
    assert read.result().session == "s"
    assert [edge.id for edge in await Edges(forgetful).live()] == ["e"]


async def test_what_was_begun_before_a_restart_with_data_is_known_after_it(own_redis: RedisServer, mac: str) -> None:
    store = await Store.open(own_redis.url, 16)
    calls = CallTable(store)
    begun = await calls.begin(mac, "t:c", 60)
    assert isinstance(begun, CallBegun)
    own_redis.kill()
    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
        again = group.create_task(calls.begin(mac, "t:c", 60))
        await asyncio.to_thread(own_redis.start)
    assert again.result() == CallKnown(begun.id, "pending", "")
    assert await calls.complete(mac, str(begun.id), "x")
    await store.close()


async def test_commands_meanwhile_are_refused_within_the_limit(
    server: EngineProcess, forgetful: Store, monkeypatch: pytest.MonkeyPatch, mac: str
) -> None:
    monkeypatch.setattr(retries, "LIMIT_SECONDS", 0.3)
    server.kill()
    async with asyncio.timeout(LIMIT):
        with pytest.raises(Unavailable):
            await CallTable(forgetful).begin(mac, "t:c", 60)
        with pytest.raises(Unavailable):
            await Inboxes(forgetful).read_shards({1: "0", 2: "0"})
        with pytest.raises(Unavailable):
            await forgetful.ping()
        with pytest.raises(Unavailable):
            await Store.open(server.url, 16)


async def test_a_server_that_hangs_is_given_up_and_found_again(
    server: EngineProcess, forgetful: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "LIMIT_SECONDS", 0.5)
    monkeypatch.setattr(forgetful.client.retries, "_answer", 0.1)
    leases, refused = Leases(forgetful, "w", 60), 0

    async def take() -> None:
        nonlocal refused
        try:
            await leases.take(3)
        except Unavailable:
            refused += 1

    server.signal(signal.SIGSTOP)
    try:
        async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
            for _ in range(2 * MOST_COMMANDS):
                group.create_task(take())
    finally:
        server.signal(signal.SIGCONT)
    assert refused == 2 * MOST_COMMANDS
    monkeypatch.setattr(forgetful.client.retries, "_answer", LIMIT)
    monkeypatch.setattr(retries, "LIMIT_SECONDS", LIMIT)
    assert await leases.take(3) is not None


async def test_connections_are_bounded(server: EngineProcess, forgetful: Store) -> None:
    boxes, leases = Inboxes(forgetful), Leases(forgetful, "w", 60)
    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
        for number in range(4 * MOST_COMMANDS):
            group.create_task(leases.take(number % 16))
            group.create_task(boxes.to_edge("e", CloseSessionCommand(device="d", session="s")))
            group.create_task(forgetful.ping())
        for number in range(2 * MOST_BLOCKING_READS):
            group.create_task(boxes.read_shards({number: "0"}))
        living = await leases.announce()
    assert len(living) == 1
    clients = await forgetful.client.info("clients")
    assert clients["connected_clients"] <= 2 * MOST_COMMANDS + MOST_BLOCKING_READS


@pytest.fixture
def reads_block_long(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (store, inbox):
        monkeypatch.setattr(module, "BLOCK_SECONDS", 2 * LIMIT)


@pytest.mark.usefixtures("reads_block_long")
async def test_blocking_reads_keep_a_connection_each_and_nothing_waits_behind_them(server: EngineProcess) -> None:
    forgetful = await Store.open(server.url, 16)
    boxes, message = Inboxes(forgetful), AnswerDoneEvent(device="d", session="s", turn="t")
    await boxes.to_shard(0, message)
    before = (await forgetful.client.info("clients"))["connected_clients"]
    for number in range(3):
        async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
            blocked = group.create_task(boxes.read_shards({1: "0"}))
            while (await forgetful.client.info("clients"))["blocked_clients"] == 0:
                await asyncio.sleep(0)
            assert [entry.event for entry in await Inboxes(forgetful).read_shards({0: "0"})] == [message], number
            assert not blocked.done()
            blocked.cancel()
    assert [entry.event for entry in await boxes.read_shards({0: "0"})] == [message]
    assert (await forgetful.client.info("clients"))["connected_clients"] <= before + 2
    await forgetful.close()


@pytest.mark.parametrize("serves_stale_data", ["yes", "no"])
async def test_commands_wait_until_the_server_is_the_primary_again(
    server: EngineProcess, forgetful: Store, serves_stale_data: str, mac: str
) -> None:
    """READONLY and MASTERDOWN."""
    with redis.Redis.from_url(server.url) as admin:
        admin.config_set("replica-serve-stale-data", serves_stale_data)
        admin.replicaof(LOOPBACK, free_port())
        async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
            lease = group.create_task(Leases(forgetful, "w", 60).take(3))
            begun = group.create_task(CallTable(forgetful).begin(mac, "t:c", 60))
            while not forgetful.client.retries.faults:
                await asyncio.sleep(0.01)
            admin.replicaof("NO", "ONE")
    assert lease.result() is not None
    assert isinstance(begun.result(), CallBegun)


async def test_opening_explains_what_is_wrong_with_the_address(server: EngineProcess, cluster_url: str) -> None:
    with redis.Redis.from_url(server.url) as admin:
        admin.config_set("requirepass", "secret")
    place = f"{LOOPBACK}:{server.port}"
    cluster_node = cluster_url.partition("://")[2].partition(",")[0]
    for url, reason in (
        (f"redis://{place}", "refuses the name or password"),
        (f"redis://:wrong@{place}", "refuses the name or password"),
        (f"redis+cluster://:secret@{place}", "names no Cluster"),
        (f"redis://{cluster_node}", "redis\\+cluster://"),
    ):
        async with asyncio.timeout(LIMIT):
            with pytest.raises(ConfigError, match=reason):
                await Store.open(url, 16)
    store = await Store.open(f"redis://:secret@{place}", 16)
    await store.close()
