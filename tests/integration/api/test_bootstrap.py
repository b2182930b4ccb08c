"""The bootstrap over real HTTP and a real Redis."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest

from fleet.adapters.redis.access.admissions import Admissions
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.devices.registry import DeviceRegistry
from fleet.ground.settings import load
from fleet.ground.settings.slices import slice_of
from fleet.roles.api.activation import ActivationRoute
from fleet.roles.api.app import build_app
from fleet.roles.api.bootstrap import Bootstrap
from fleet.roles.api.settings import ApiSettings
from fleet.wire.identity import CredentialKeys
from fleet.wire.topics import up_topic
from tests.support.api_server import BODY, MAC, api_client, headers
from tests.support.redis_server import RedisServer

OTA = "/xiaozhi/ota/"


@pytest.fixture
async def client(store: Store, keys: CredentialKeys) -> AsyncIterator[httpx2.AsyncClient]:
    async with api_client(store, keys) as client:
        yield client


async def test_a_device_is_told_all_that_it_needs(
    client: httpx2.AsyncClient, store: Store, keys: CredentialKeys
) -> None:
    answer = await client.post(OTA, headers=headers(Accept_Language="zh-CN"), content=BODY)
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
    assert (known.board, known.firmware, known.host, known.language) == ("board", "2.4.2", "127.0.0.1", "zh-CN")
    [entry] = await DeviceRegistry(store).entries()
    assert (entry.device.mac, entry.key) == (MAC, keys.ids[0])


async def test_a_language_that_is_no_locale_is_not_kept(client: httpx2.AsyncClient, store: Store) -> None:
    for odd in ("../../etc/passwd", "<img src=x>", "x" * 40, "en US"):
        await client.post(OTA, headers=headers(Accept_Language=odd), content=b'{"language":"{{7*7}}"}')
        assert (await Devices(store).read(MAC)).language == "", odd
    await client.post(OTA, headers=headers(Accept_Language="de-AT;q=0.9, en"), content=BODY)
    assert (await Devices(store).read(MAC)).language == "de-AT"


async def test_header_names_are_spelled_as_4g_boards_need_them(client: httpx2.AsyncClient) -> None:
    answer = await client.post(OTA, headers=headers(), content=BODY)
    assert b"Content-Length" in [name for name, _ in answer.headers.raw]


@pytest.mark.parametrize("body", [b"", b'{"board":{"ssid":"my "net""}}', b"\xff\xfe", b"[]", b"x" * 200_000])
async def test_a_broken_body_changes_nothing(client: httpx2.AsyncClient, body: bytes) -> None:
    whole = await client.post(OTA, headers=headers(), content=BODY)
    broken = await client.post("/xiaozhi/ota", headers=headers(), content=body)
    assert broken.status_code == 200
    assert broken.json()["mqtt"] == whole.json()["mqtt"]


async def test_who_is_no_device_is_told_so(client: httpx2.AsyncClient) -> None:
    answer = await client.post(OTA, content=BODY)
    assert answer.status_code == 400
    assert "Device-Id" in answer.json()["error"]


async def test_a_host_that_devices_cannot_use_is_refused_in_words(client: httpx2.AsyncClient) -> None:
    answer = await client.post(OTA, headers=headers(Host="[::1]:8000"), content=BODY)
    assert answer.status_code == 400
    assert "FLEET_PUBLIC_HOST" in answer.json()["error"]


async def test_a_host_header_changes_nothing_but_its_own_answer(store: Store, keys: CredentialKeys) -> None:
    async with api_client(store, keys, activation="open") as client:
        await client.post(OTA, headers=headers(), content=BODY)
        poisoned = await client.post(OTA, headers=headers(Host="evil.example:8000"), content=BODY)
        assert poisoned.json()["mqtt"]["endpoint"] == "evil.example:1883"
        assert (await Devices(store).read(MAC)).host == "127.0.0.1"
        again = await client.post(OTA, headers=headers(), content=BODY)
        assert again.json()["mqtt"]["endpoint"] == "127.0.0.1:1883"


async def test_a_host_that_is_set_wins_over_the_header(store: Store, keys: CredentialKeys) -> None:
    async with api_client(store, keys, public_host="voice.example.org") as client:
        answer = await client.post(OTA, headers=headers(Host="evil.example"), content=BODY)
    assert answer.json()["mqtt"]["endpoint"] == "voice.example.org:1883"
    assert (await Devices(store).read(MAC)).host == "voice.example.org"


async def test_a_device_has_a_time_zone_of_its_own(client: httpx2.AsyncClient, store: Store) -> None:
    await Admissions(store).set_timezone(MAC, "Asia/Kolkata")
    answer = await client.post(OTA, headers=headers(), content=BODY)
    assert answer.json()["server_time"]["timezone_offset"] == 330
    other = await client.post(OTA, headers=headers(Device_Id="02:00:00:00:00:01"), content=BODY)
    assert other.json()["server_time"]["timezone_offset"] == 0


async def test_a_revoked_device_gets_no_credentials(store: Store) -> None:
    keys = CredentialKeys("k1:a-key-of-this-test-only")
    keys.revoke([MAC])
    async with api_client(store, keys) as client:
        refused = await client.post(OTA, headers=headers(), content=BODY)
        assert refused.status_code == 403
        assert "mqtt" not in refused.json()
        keys.revoke([])
        assert (await client.post(OTA, headers=headers(), content=BODY)).status_code == 200


async def test_the_activation_version_may_be_missing_or_longer(client: httpx2.AsyncClient) -> None:
    for version in ("", "2.1.1", "two"):
        answer = await client.post(OTA, headers=headers(Activation_Version=version), content=BODY)
        assert answer.status_code == 200


async def test_a_fault_is_answered_as_such_and_counted(
    store: Store, keys: CredentialKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise ZeroDivisionError

    for route in (Bootstrap, ActivationRoute):
        monkeypatch.setattr(route, "answer", fail)
    api = build_app(slice_of(load(), ApiSettings), keys, store)
    transport = httpx2.ASGITransport(api, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://x") as client:
        for path in (OTA, f"{OTA}activate"):
            answer = await client.post(path, headers=headers(), content=BODY)
            assert (answer.status_code, answer.json()) == (500, {"error": "the server failed"}), path
    assert api.counts == {f"{OTA} 500": 1, f"{OTA}activate 500": 1}


async def test_nothing_is_redirected(client: httpx2.AsyncClient) -> None:
    for path in ("/xiaozhi/ota/activate/", "/xiaozhi//ota/", "/healthz/"):
        assert (await client.post(path, headers=headers())).status_code == 404


async def test_a_body_that_never_ends_is_given_up(client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleet.roles.api.body.BODY_SECONDS", 0.2)
    async with asyncio.timeout(240):
        reader, writer = await asyncio.open_connection(client.base_url.host, client.base_url.port)
        writer.write(f"POST {OTA} HTTP/1.1\r\nHost: x\r\nDevice-Id: {MAC}\r\nContent-Length: 9\r\n\r\n{{".encode())
        assert (await reader.readline()).split()[1] == b"408"
        await reader.read()
        writer.close()


async def test_a_herd_is_answered(client: httpx2.AsyncClient) -> None:
    async with asyncio.timeout(240), asyncio.TaskGroup() as group:
        macs = [f"02:00:00:00:00:{number:02x}" for number in range(200)]
        asked = [group.create_task(client.post(OTA, headers=headers(Device_Id=mac), content=BODY)) for mac in macs]
    assert {task.result().status_code for task in asked} == {200}


async def test_health(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/healthz")).json() == {"status": "alive"}
    assert (await client.get("/readyz")).status_code == 200


async def test_without_redis_devices_are_served_under_an_open_policy_only(
    keys: CredentialKeys, own_redis: RedisServer
) -> None:
    store = await Store.open(own_redis.url, 16)
    own_redis.kill()
    async with api_client(store, keys, activation="open") as client:
        assert (await client.post(OTA, headers=headers(), content=BODY)).status_code == 200
        assert (await client.get("/readyz")).status_code == 503
    async with api_client(store, keys, activation="first") as client:
        assert (await client.post(OTA, headers=headers(), content=BODY)).status_code == 503
    await store.close()


@pytest.mark.parametrize(
    ("sent", "body", "dialect"),
    [
        ({}, BODY, "xiaozhi"),
        ({"Activation_Version": ""}, b"{}", "xiaozhi"),
        ({"Activation_Version": "", "User_Agent": "python-httpx/0.28.1"}, BODY, "xiaozhi"),
        ({"Activation_Version": "", "User_Agent": "python-httpx/0.28.1"}, b"{}", ""),
    ],
)
@pytest.mark.requirement("REG-26")
async def test_only_a_bootstrap_like_firmwares_tells_that_a_device_is_a_xiaozhi(
    client: httpx2.AsyncClient, store: Store, sent: dict[str, str], body: bytes, dialect: str
) -> None:
    assert (await client.post(OTA, headers=headers(**sent), content=body)).status_code == 200
    assert (await Devices(store).read(MAC)).dialect == dialect


async def test_a_bootstrap_does_not_change_a_dialect_that_is_known(client: httpx2.AsyncClient, store: Store) -> None:
    await Devices(store).describe(MAC, {"dialect": "registrar"})
    assert (await client.post(OTA, headers=headers(), content=BODY)).status_code == 200
    assert (await Devices(store).read(MAC)).dialect == "registrar"
