"""A call is sent only when it outlives the server that took it down."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import redis

from fleet.adapters.redis.client.replicas import Replicas
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.sessions.calls import CallBegun, CallKnown, CallRefused, CallTable
from tests.support.patience import REDIS, lengthen
from tests.support.ports import LOOPBACK
from tests.support.process import running
from tests.support.redis_engines import EngineProcess
from tests.support.tcp_relay import TcpRelay

LIMIT = 240


@pytest.fixture
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[EngineProcess, EngineProcess]]:
    """Two servers; who is whose replica is the tests' business."""
    engine = getattr(request, "param", "redis")
    with (
        running(EngineProcess(engine, tmp_path)) as first,
        running(EngineProcess(engine, tmp_path)) as one,
    ):
        yield first, one


@pytest.fixture
async def line(servers: tuple[EngineProcess, EngineProcess]) -> AsyncIterator[TcpRelay]:
    """What connects the second server to the first."""
    async with TcpRelay(servers[0].port) as relay:
        yield relay


@pytest.fixture
async def store(
    servers: tuple[EngineProcess, EngineProcess], line: TcpRelay, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Store]:
    """Of the first server, whose replica the second one is."""
    lengthen(monkeypatch, REDIS)
    store = await Store.open(servers[0].url, 16)
    await follow(servers[1], line.port)
    async with asyncio.timeout(LIMIT):
        while not await Replicas(store.client).exist("any"):
            # Something to acknowledge; without news the first acknowledgement takes ten seconds.
            await store.client.set("any", "1")
            await asyncio.sleep(0.01)
    yield store
    await store.close()


async def follow(server: EngineProcess, port: int | None) -> None:
    with redis.Redis.from_url(server.url) as admin:
        await asyncio.to_thread(admin.replicaof, *((LOOPBACK, port) if port else ("NO", "ONE")))


async def test_a_call_that_a_replica_has_is_sent(
    store: Store, servers: tuple[EngineProcess, EngineProcess], mac: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleet.adapters.redis.client.client.WAIT_MS", LIMIT * 1000)
    begun = await CallTable(store).begin(mac, "t:c", 60)
    assert isinstance(begun, CallBegun)
    with redis.Redis.from_url(servers[1].url, decode_responses=True) as replica:
        assert replica.hget(store.keys.call(mac, begun.id), "st") == "S"


@pytest.mark.parametrize("servers", ["redis", "valkey"], indirect=True)
async def test_a_call_that_no_replica_has_is_not_sent_and_could_be_sent_once_by_the_successor(
    store: Store, servers: tuple[EngineProcess, EngineProcess], line: TcpRelay, mac: str
) -> None:
    calls = CallTable(store)
    line.freeze()
    async with asyncio.timeout(LIMIT):
        refused = [await calls.begin(mac, f"t:{number}", 60) for number in range(3)]
    assert refused == [CallRefused("unsaved")] * 3
    known = await calls.begin(mac, "t:0", 60)
    assert isinstance(known, CallKnown) and known.state == "not sent"
    assert await store.client.hget(store.keys.device(mac), "np") == "0"

    await follow(servers[1], None)
    line.cut()
    successor = await Store.open(servers[1].url, 16)
    # It never heard of the calls: that is no harm, because none of them was sent.
    assert isinstance(await CallTable(successor).begin(mac, "t:0", 60), CallBegun)
    await successor.close()


async def test_a_server_without_replicas_waits_for_none(
    store: Store, line: TcpRelay, mac: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = CallTable(store)
    with monkeypatch.context() as patient:
        patient.setattr("fleet.adapters.redis.client.client.WAIT_MS", LIMIT * 1000)
        assert isinstance(await calls.begin(mac, "before", 60), CallBegun)
    line.freeze()
    line.cut()
    begun: CallBegun | CallKnown | CallRefused = CallRefused("unsaved")
    async with asyncio.timeout(LIMIT):
        number = 0
        while begun == CallRefused("unsaved"):
            number += 1
            line.cut()
            begun = await calls.begin(mac, f"after {number}", 60)
    assert isinstance(begun, CallBegun)


async def test_replicas_are_not_asked_for_with_every_call(
    store: Store, mac: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleet.adapters.redis.client.replicas.KNOWN_SECONDS", LIMIT)
    calls = CallTable(store)
    await calls.begin(mac, "first", 60)
    asked = (await store.client.info("commandstats"))["cmdstat_info"]["calls"]
    for number in range(5):
        await calls.begin(mac, f"t:{number}", 60)
    assert (await store.client.info("commandstats"))["cmdstat_info"]["calls"] == asked + 1
