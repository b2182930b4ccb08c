"""A key's rotation, with a real Redis and the api's own bootstrap."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fleet.adapters.redis.access import watch
from fleet.adapters.redis.access.watch import KeysWatch
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.devices.registry import DeviceRegistry
from fleet.ground.tasks import running
from fleet.operations import rotation
from fleet.operations.rotation import KeysFile, Pace, Rotation
from fleet.wire.identity import CredentialKeys, parse_username
from fleet.wire.topics import down_topic
from tests.support.api_server import BODY, api_client, headers
from tests.support.known_device import note_device
from tests.support.patience import API, lengthen
from tests.support.redis_store import opened

ONLINE, BUSY, AWAY = "02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03"


@pytest.fixture
async def store(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Store]:
    lengthen(monkeypatch, API)
    monkeypatch.setattr(watch, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(rotation, "POLL_SECONDS", 0.05)
    async with opened(redis_url) as store:
        yield store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "keys"
    path.write_text("k1 a-key-of-this-test-only\n")
    return path


async def test_devices_are_restarted_and_the_old_key_goes_when_nobody_has_it(store: Store, path: Path) -> None:
    keys, lines = KeysFile(path).read(), list[str]()
    restarted = asyncio.Queue[str](10)

    def publish(topic: str, payload: bytes) -> bool:
        asked = json.loads(payload)["payload"]
        assert (asked["method"], asked["params"]["name"]) == ("tools/call", "self.reboot")
        restarted.put_nowait(topic)
        return True

    async with api_client(store, keys) as client, running("keys", KeysWatch(path, keys).run):
        first = (await client.post("/xiaozhi/ota/", headers=headers(Device_Id=ONLINE), content=BODY)).json()["mqtt"]
        await Devices(store).appear(ONLINE, online=True, epoch=1)
        moving = Rotation(
            KeysFile(path), DeviceRegistry(store), publish, lines.append, Pace(settle=0.1, reconnect_limit=240)
        )
        async with asyncio.timeout(240), asyncio.TaskGroup() as group:
            running_rotation = group.create_task(moving.run())
            assert await restarted.get() == down_topic(ONLINE)
            await until_known(keys, "k2", "k1")
            assert keys.verify(ONLINE, first["username"], first["password"]) == "device", "the old one is still good"
            second = (await client.post("/xiaozhi/ota/", headers=headers(Device_Id=ONLINE), content=BODY)).json()[
                "mqtt"
            ]
            assert second["username"].startswith("device.k2.first.")
            assert await running_rotation == []
    assert KeysFile(path).read().ids == ("k2",)
    assert restarted.empty(), "each device is asked once"
    assert [line.partition(":")[0] for line in lines][:2] == ["accepted", "signs now"]


async def test_who_talks_or_is_away_keeps_the_old_key_alive(store: Store, path: Path) -> None:
    KeysFile(path).write(["k2 the-newer-key-of-this-test", "k1 a-key-of-this-test-only"])
    registry, devices, asked = DeviceRegistry(store), Devices(store), list[str]()
    for mac in (BUSY, AWAY):
        await note_device(store, mac, {"kid": "k1", **({"sid": "abc"} if mac == BUSY else {})})
    await devices.appear(BUSY, online=True, epoch=1)

    def publish(topic: str, _: bytes) -> bool:
        asked.append(topic)
        return True

    moving = Rotation(KeysFile(path), registry, publish, lambda _: None, Pace(reconnect_limit=0.1))
    async with asyncio.timeout(240):
        left = await moving.run()
    assert [entry.device.mac for entry in left] == [BUSY, AWAY]
    assert asked == []
    assert KeysFile(path).read().ids == ("k2", "k1")


async def test_a_bootstrap_in_a_devices_name_does_not_retire_its_key(store: Store, path: Path) -> None:
    keys, lines = KeysFile(path).read(), list[str]()
    restarted = asyncio.Queue[str](10)
    devices = Devices(store)

    def publish(topic: str, _: bytes) -> bool:
        restarted.put_nowait(topic)
        return True

    async with api_client(store, keys) as client, running("keys", KeysWatch(path, keys).run):

        async def bootstrap(mac: str) -> str:
            answer = await client.post("/xiaozhi/ota/", headers=headers(Device_Id=mac), content=BODY)
            return str(answer.json()["mqtt"]["username"])

        for mac, online in ((ONLINE, True), (AWAY, False)):
            await devices.appear(mac, online=True, epoch=1, user=await bootstrap(mac))
            await devices.appear(mac, online=online, epoch=1)
        moving = Rotation(
            KeysFile(path), DeviceRegistry(store), publish, lines.append, Pace(settle=0.1, reconnect_limit=240)
        )
        async with asyncio.timeout(240), asyncio.TaskGroup() as group:
            running_rotation = group.create_task(moving.run())
            assert await restarted.get() == down_topic(ONLINE)
            await until_known(keys, "k2", "k1")
            # A stranger asks in the names of both; they hold what they hold.
            assert {key_id(await bootstrap(mac)) for mac in (ONLINE, AWAY)} == {"k2"}
            user = await bootstrap(ONLINE)
            await devices.appear(ONLINE, online=True, epoch=2, user=user)
            assert [entry.device.mac for entry in await running_rotation] == [AWAY]
        assert KeysFile(path).read().ids == ("k2", "k1")
        await devices.appear(AWAY, online=True, epoch=2, user=await bootstrap(AWAY))
        assert await moving.run() == []
    assert KeysFile(path).read().ids == ("k2",)
    assert not any("broker has not reported" in line for line in lines)


async def test_where_no_broker_says_who_connects_the_bootstrap_counts_and_that_is_said(
    store: Store, path: Path
) -> None:
    KeysFile(path).write(["k2 the-newer-key-of-this-test", "k1 a-key-of-this-test-only"])
    lines = list[str]()
    await note_device(store, ONLINE, {"kid": "k2"})
    await Devices(store).appear(ONLINE, online=True, epoch=1)
    moving = Rotation(KeysFile(path), DeviceRegistry(store), lambda *_: True, lines.append, Pace(reconnect_limit=0))
    assert await moving.run() == []
    assert lines[0].startswith("the broker has not reported the key of 1 device;")


async def until_known(keys: CredentialKeys, *ids: str) -> None:
    """Wait until the api has read the file: on a busy machine it may be late."""
    while keys.ids != ids:
        await asyncio.sleep(0.02)


def key_id(username: str) -> str:
    name = parse_username(username)
    assert name is not None
    return name.key_id
