"""What a publisher hears when a device is offline: all that Mosquitto can say, and what it cannot."""

import asyncio

import pytest

from fleet.wire.topics import down_topic, lost_topic, up_topic
from tests.support.mqtt_clients import Clients
from tests.support.mqtt_raw import PUBACK, frame, string

MAC = "02:a5:0e:00:00:01"
GONE = "02:a5:0e:00:00:02"
DELIVERED, OFFLINE = 0x10, 0x87
QOS_NOT_SUPPORTED = 0x9B


async def test_mqtt_5_publisher_at_qos_1_hears_it_of_each_message(clients: Clients) -> None:
    await clients.device(MAC)
    service = await clients.service(level=5)
    answers = [await service.publish_acknowledged(down_topic(mac), b"order") for mac in (GONE, MAC, GONE)]
    assert answers == [OFFLINE, DELIVERED, OFFLINE]


async def test_answer_carries_a_code_and_no_text(clients: Clients) -> None:
    service = await clients.service(level=5)
    await service.send(frame(0x32, string(down_topic(GONE)) + b"\0\7\0" + b"order"))
    assert await service.until(PUBACK) == b"\0\7" + bytes((OFFLINE,)), "Mosquitto has no reason string here"


async def test_foreign_topic_is_answered_like_an_offline_device(clients: Clients) -> None:
    service = await clients.service(level=5)
    assert await service.publish_acknowledged("fleet/down/nobody", b"order") == OFFLINE
    assert await service.publish_acknowledged(down_topic(GONE), b"order", retain=False) == OFFLINE


@pytest.mark.parametrize("mac", [MAC, GONE])
async def test_mqtt_3_publisher_hears_the_same_of_every_device(clients: Clients, mac: str) -> None:
    await clients.device(MAC)
    service = await clients.service()
    await service.send(frame(0x32, string(down_topic(mac)) + b"\0\7" + b"order"))
    assert await service.until(PUBACK) == b"\0\7", "MQTT 3.1.1 acknowledges without a code"


async def test_publisher_at_qos_0_hears_nothing(clients: Clients) -> None:
    service = await clients.service(level=5)
    await service.publish(down_topic(GONE), b"order")
    assert await service.publish_acknowledged(down_topic(GONE), b"order") == OFFLINE, "nothing came before this"


async def test_qos_2_is_refused_before_anything_happens(clients: Clients) -> None:
    device, service = await clients.device(MAC), await clients.service(level=5)
    await service.send(frame(0x34, string(down_topic(MAC)) + b"\0\7\0" + b"order"))
    assert (await service.until(14))[0] == QOS_NOT_SUPPORTED
    assert await device.pending() == []


async def test_device_that_fell_silent_counts_as_online_until_its_keep_alive_ends(clients: Clients) -> None:
    await clients.device(MAC)  # and never reads again
    service = await clients.service(level=5)
    assert await service.publish_acknowledged(down_topic(MAC), b"order") == DELIVERED


async def test_repeated_qos_1_order_acts_twice_so_orders_go_at_qos_0(clients: Clients) -> None:
    device, service = await clients.device(MAC), await clients.service()
    order = string(down_topic(MAC)) + b"\0\7" + b"order"
    await service.send(frame(0x32, order) + frame(0x3A, order))  # the second one marked as a duplicate
    await service.publish(down_topic(MAC), b"last")
    assert [one.payload for one in await device.messages(b"last")] == [b"order", b"order", b"last"]


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("qos", [0, 1])
async def test_publisher_stays_connected_whatever_it_says(clients: Clients, level: int, qos: int) -> None:
    """Any result of a message event but two would end the publisher."""
    service = await clients.service(level=level)
    topics = [down_topic(GONE), "fleet/down/", "fleet/down/x", "fleet/down/" + "a" * 4000, up_topic(MAC), "x", "$SYS/x"]
    for topic in [*topics, lost_topic(3), "$CONTROL/dynamic-security/v1", "$share/g/x"]:
        for payload in (b"", b"x", b"\0" * 70_000):
            if qos:
                await service.publish_acknowledged(topic, payload)
            else:
                await service.publish(topic, payload)
    assert await service.pending() == []


async def test_device_that_acknowledges_nothing_delays_only_itself(clients: Clients) -> None:
    deaf = await clients.stranger(acknowledge=False)
    assert await deaf.connect(clients.keys.issue("device", GONE)) == 0
    device, service = await clients.device(MAC), await clients.service(level=5)
    for number in range(1500):
        await service.send(frame(0x32, string(down_topic(GONE)) + (number + 1).to_bytes(2) + b"\0" + b"%d" % number))
    for _ in range(1500):
        assert (await service.until(PUBACK))[2] == DELIVERED
    got = [int(one.payload) for one in await deaf.pending()]
    assert got == list(range(1000)), "max_inflight_messages of the shipped configuration"
    await service.publish(down_topic(MAC), b"order")
    assert (await device.message()).payload == b"order"


async def test_whoever_publishes_faster_than_devices_come_gets_one_answer_each(clients: Clients) -> None:
    service = await clients.service(level=5)
    macs = [f"02:a5:0e:01:00:{number:02x}" for number in range(40)]
    for mac in macs[::2]:
        await clients.device(mac)
    async with asyncio.timeout(240):
        answers = [await service.publish_acknowledged(down_topic(mac), b"order") for mac in macs]
    assert answers == [DELIVERED, OFFLINE] * 20
