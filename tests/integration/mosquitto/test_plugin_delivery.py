"""What reaches a device, which never subscribes, and what its publisher hears about it."""

import re
import subprocess
from pathlib import Path

import pytest

from fleet.wire.identity import CredentialKeys
from fleet.wire.topics import down_topic, up_topic
from tests.support.mosquitto_server import MosquittoServer
from tests.support.mqtt_clients import Clients
from tests.support.plugin_build import SOURCES, build_plugin
from tests.support.process import running

MAC = "02:de:11:00:00:01"
OFFLINE = 0x87
NO_SUBSCRIBER = 0x10


@pytest.mark.parametrize("qos", [0, 1])
async def test_device_that_never_subscribed_gets_messages(clients: Clients, qos: int) -> None:
    device, service = await clients.device(MAC), await clients.service()
    if qos:
        await service.publish_acknowledged(down_topic(MAC), b"order")
    else:
        await service.publish(down_topic(MAC), b"order")
    message = await device.message()
    assert (message.topic, message.payload, message.qos, message.retain) == (down_topic(MAC), b"order", qos, False)


async def test_messages_keep_their_order(clients: Clients) -> None:
    device, service = await clients.device(MAC), await clients.service()
    orders = [b"%d" % number for number in range(500)]
    for order in orders:
        await service.publish(down_topic(MAC), order)
    assert [message.payload for message in await device.messages(orders[-1])] == orders


async def test_subscribed_device_gets_everything_exactly_once(clients: Clients) -> None:
    device, service = await clients.device(MAC), await clients.service()
    await service.publish(down_topic(MAC), b"before")
    assert (await device.message()).payload == b"before"
    assert await device.subscribe(down_topic(MAC), qos=1) == 1
    for payload in (b"1", b"2"):
        await service.publish(down_topic(MAC), payload)
        await service.publish_acknowledged(down_topic(MAC), payload + b"+")
    await device.unsubscribe(down_topic(MAC))
    await service.publish(down_topic(MAC), b"last")
    assert [message.payload for message in await device.messages(b"last")] == [b"1", b"1+", b"2", b"2+", b"last"]
    assert await device.pending() == []


@pytest.mark.parametrize("size", [0, 1, 64 * 1024])
async def test_payloads_of_every_size_pass_unchanged(clients: Clients, size: int) -> None:
    device, service = await clients.device(MAC), await clients.service()
    payload = (bytes(range(256)) * 256)[:size]
    await service.publish(down_topic(MAC), payload)
    assert (await device.message()).payload == payload


async def test_device_message_of_64_kilobytes_passes(clients: Clients) -> None:
    device, service = await clients.device(MAC), await clients.service()
    await service.subscribe(up_topic(MAC))
    await device.publish(up_topic(MAC), b"x" * 64 * 1024)
    assert (await service.message()).payload == b"x" * 64 * 1024


async def test_publisher_hears_whether_the_device_is_online(clients: Clients) -> None:
    mac = "02:de:11:00:00:02"
    service = await clients.service(level=5)
    assert await service.publish_acknowledged(down_topic(mac), b"early") == OFFLINE
    device = await clients.device(mac)
    assert await service.publish_acknowledged(down_topic(mac), b"in time") == NO_SUBSCRIBER
    assert (await device.message()).payload == b"in time"
    await device.leave()
    assert await service.publish_acknowledged(down_topic(mac), b"late") == OFFLINE


async def test_offline_device_finds_nothing_from_before(clients: Clients) -> None:
    mac = "02:de:11:00:00:03"
    service = await clients.service()
    await (await clients.device(mac, clean=False)).leave()
    await service.publish_acknowledged(down_topic(mac), b"while away")
    device = await clients.device(mac, clean=False)
    await service.publish(down_topic(mac), b"now")
    assert [message.payload for message in await device.messages(b"now")] == [b"now"]


async def test_message_that_a_device_did_not_acknowledge_is_not_repeated(clients: Clients) -> None:
    mac = "02:de:11:00:00:04"
    service = await clients.service()
    device = await clients.stranger(acknowledge=False)
    assert await device.connect(clients.keys.issue("device", mac), clean=False) == 0
    await service.publish_acknowledged(down_topic(mac), b"act")
    assert (await device.message()).payload == b"act"
    device.cut()
    again = await clients.device(mac, clean=False)
    await service.publish(down_topic(mac), b"now")
    assert [message.payload for message in await again.messages(b"now")] == [b"now"]


async def test_messages_reach_only_their_device(clients: Clients) -> None:
    device, service = await clients.device(MAC), await clients.service()
    other = await clients.device("02:de:11:00:00:05")
    await service.publish(down_topic("02:de:11:00:00:05"), b"for the other")
    assert (await other.message()).payload == b"for the other"
    assert await device.pending() == []


async def test_memory_accounts_survive_a_thousand_deliveries(tmp_path: Path, keys: CredentialKeys) -> None:
    limit = 50_000_000
    server = MosquittoServer(tmp_path, keys, {"sys_interval": "1", "memory_limit": str(limit)})
    with running(server) as broker:
        async with Clients(broker) as clients:
            device, service = await clients.device(MAC), await clients.service()
            for number in range(1000):
                await service.publish(down_topic(MAC), b"%d" % number)
            await device.messages(b"999")
            await service.subscribe("$SYS/broker/heap/current")
            assert 0 < int((await service.message()).payload) < limit
            await clients.device("02:de:11:00:00:06")


def test_plugin_never_copies_through_the_broker() -> None:
    symbols = subprocess.run(["nm", "-D", str(build_plugin())], capture_output=True, text=True, check=True).stdout
    assert "mosquitto_broker_publish_copy" not in symbols
    assert "mosquitto_broker_publish" in symbols
    assert not [path for path in SOURCES.glob("*.c") if "mosquitto_broker_publish_copy" in path.read_text()]


def test_plugin_exports_nothing_but_its_three_entries() -> None:
    command = ["nm", "-D", "--defined-only", str(build_plugin())]
    symbols = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r" [A-Z] (\w+)", symbols)) == {
        "mosquitto_plugin_version",
        "mosquitto_plugin_init",
        "mosquitto_plugin_cleanup",
    }
