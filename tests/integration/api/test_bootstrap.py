"""The bootstrap over real HTTP and a real Redis."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest

from fleet.api.app import build_app
from fleet.link.http import HttpServer
from fleet.settings import load
from fleet.store.connect import Store
from fleet.store.devices import Devices
from fleet.tasks import running
from fleet.wire.identity import Keys
from fleet.wire.topics import up_topic
from tests.support.redis_server import RedisServer

MAC = "aa:bb:cc:dd:ee:ff"
HEADERS = {"Device-Id": MAC, "Client-Id": "x", "User-Agent": "board/2.4.2", "Activation-Version": "1"}
BODY = b'{"application":{"version":"2.4.2"},"board":{"type":"wifi-board"},"language":"zh-CN"}'


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[Store]:
    store = await Store.open(redis_url, 16)
    yield store
    await store.close()


@pytest.fixture
async def client(store: Store, keys: Keys) -> AsyncIterator[httpx2.AsyncClient]:
    server = HttpServer(build_app(load(), keys, store), "127.0.0.1", 0)
    async with (
        running("api", server.run),
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", trust_env=False) as client,
    ):
        yield client


async def test_a_device_is_told_all_that_it_needs(client: httpx2.AsyncClient, store: Store, keys: Keys) -> None:
    answer = await client.post("/xiaozhi/ota/", headers=HEADERS, content=BODY)
    assert answer.status_code == 200
    assert int(answer.headers["content-length"]) == len(answer.content) < 7000
    mqtt, time = answer.json()["mqtt"], answer.json()["server_time"]
    assert mqtt["endpoint"] == "127.0.0.1:1883"
    assert mqtt["publish_topic"] == up_topic(MAC)
    assert keys.verify(mqtt["client_id"], mqtt["username"], mqtt["password"]) == "device"
    assert isinstance(mqtt["keepalive"], int)
    assert isinstance(time["timestamp"], int) and isinstance(time["timezone_offset"], int)
    assert all(len(name) <= 15 for name in mqtt)
    assert {"firmware", "activation", "websocket"}.isdisjoint(answer.json())
    known = await Devices(store).read(MAC)
    assert (known.board, known.firmware, known.host, known.language) == ("wifi-board", "2.4.2", "127.0.0.1", "zh-CN")


@pytest.mark.parametrize("body", [b"", b'{"board":{"ssid":"my "net""}}', b"\xff\xfe", b"[]", b"x" * 200_000])
async def test_a_broken_body_changes_nothing(client: httpx2.AsyncClient, body: bytes) -> None:
    whole = await client.post("/xiaozhi/ota/", headers=HEADERS, content=BODY)
    broken = await client.post("/xiaozhi/ota", headers=HEADERS, content=body)
    assert broken.status_code == 200
    assert broken.json()["mqtt"] == whole.json()["mqtt"]


async def test_who_is_no_device_is_told_so(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/xiaozhi/ota/", content=BODY)
    assert answer.status_code == 400
    assert "Device-Id" in answer.json()["error"]


async def test_a_host_that_devices_cannot_use_is_refused_in_words(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/xiaozhi/ota/", headers={**HEADERS, "Host": "[::1]:8000"}, content=BODY)
    assert answer.status_code == 400
    assert "FLEET_PUBLIC_HOST" in answer.json()["error"]


async def test_a_herd_is_answered(client: httpx2.AsyncClient) -> None:
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        asked = [group.create_task(client.post("/xiaozhi/ota/", headers=HEADERS, content=BODY)) for _ in range(200)]
    assert {task.result().status_code for task in asked} == {200}


async def test_health(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/healthz")).json() == {"status": "alive"}
    assert (await client.get("/readyz")).status_code == 200


async def test_without_redis_devices_are_still_served(keys: Keys, own_redis: RedisServer) -> None:
    store = await Store.open(own_redis.url, 16)
    own_redis.kill()
    server = HttpServer(build_app(load(), keys, store), "127.0.0.1", 0)
    async with (
        running("api", server.run),
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", trust_env=False) as client,
    ):
        assert (await client.post("/xiaozhi/ota/", headers=HEADERS, content=BODY)).status_code == 200
        assert (await client.get("/readyz")).status_code == 503
    await store.close()
