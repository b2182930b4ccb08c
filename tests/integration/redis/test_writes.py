"""A Redis that answers and takes no writes: whoever needs them says so, and why."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from fleet.adapters.net.http.metrics_server import MetricsServer
from fleet.adapters.net.http.readiness import Readiness
from fleet.adapters.redis.client import retries
from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import Unavailable
from fleet.ground.settings import load
from fleet.ground.tasks import running
from fleet.run.resources import open_resources
from fleet.wire.identity import CredentialKeys
from tests.support.api_server import api_client
from tests.support.gateway_stage import ScriptedModel, gateway_stage, says
from tests.support.patience import API, METRICS, REDIS, lengthen
from tests.support.ports import LOOPBACK, free_port
from tests.support.redis_server import RedisServer
from tests.support.redis_store import opened
from tests.support.scraped import ask

LIMIT = 240.0
Ailment = Callable[[Store], Awaitable[object]]


async def full(store: Store) -> object:
    return await store.client.config_set("maxmemory", "1mb")


async def read_only(store: Store) -> object:
    return await store.client.execute_command("REPLICAOF", LOOPBACK, free_port())


async def alone(store: Store) -> object:
    return await store.client.config_set("min-replicas-to-write", 1)


AILMENTS = [(full, "maxmemory"), (read_only, "read only replica"), (alone, "NOREPLICAS")]


@pytest.fixture
async def store(own_redis: RedisServer) -> AsyncIterator[Store]:
    async with opened(own_redis.url) as store:
        yield store


async def until_said(look: Callable[[], Awaitable[str]], word: str) -> None:
    """Return when it says this; it looks once a second."""
    async with asyncio.timeout(LIMIT):
        while word not in (said := await look()):
            assert not said or word in said, said
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(("ail", "word"), AILMENTS)
async def test_a_redis_that_refuses_writes_is_distinguished_from_one_that_is_well(
    store: Store, ail: Ailment, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who tried a write again would not be back before the test's own limit.
    monkeypatch.setattr(retries, "LIMIT_SECONDS", 2 * LIMIT)
    await store.ping_writes()
    await ail(store)
    await store.ping()

    async def look() -> str:
        try:
            async with asyncio.timeout(LIMIT):
                await store.ping_writes()
        except Unavailable as error:
            return str(error)
        return ""

    await until_said(look, word)


@pytest.mark.parametrize(("ail", "word"), AILMENTS)
async def test_api_edge_and_gateway_say_why_they_are_not_ready(
    own_redis: RedisServer, store: Store, ail: Ailment, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengthen(monkeypatch, (*REDIS, *METRICS, *API))
    keys, readiness = CredentialKeys("k1:a-key-of-this-test-only"), Readiness()
    settings = load(redis_url=own_redis.url, keys="k1:a-key-of-this-test-only")
    metrics = MetricsServer(LOOPBACK, 0, readiness)
    async with (
        api_client(store, keys) as api,
        gateway_stage(own_redis.url, ScriptedModel(says("Hello."))) as gateway,
        open_resources(settings, broker=False, readiness=readiness),
        running("metrics", metrics.run),
    ):

        async def ask_api() -> str:
            return reason((await api.get("/readyz")).content)

        async def ask_gateway() -> str:
            return reason((await asyncio.to_thread(ask, gateway.gateway.port, "/readyz"))[2])

        async def ask_role() -> str:
            return reason((await asyncio.to_thread(ask, metrics.port, "/readyz"))[2])

        with readiness.serving():
            for look in (ask_api, ask_gateway, ask_role):
                assert await look() == ""
            await ail(store)
            for look in (ask_api, ask_gateway, ask_role):
                await until_said(look, word)


def reason(body: bytes) -> str:
    return str(json.loads(body).get("reason", ""))
