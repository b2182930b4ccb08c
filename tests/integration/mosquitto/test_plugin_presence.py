"""Presence: who is told to be online or offline, with which epoch."""

import json
import random

from fleet.wire.presence import Presence, parse
from fleet.wire.topics import down_topic, presence_topic
from tests.support.mosquitto_server import MosquittoServer
from tests.support.mqtt_clients import Clients
from tests.support.mqtt_raw import Message, RawClient, connect_packet

MAC = "02:9e:5e:00:00:01"
BOOT = "fleet/broker/boot"


def presence(message: Message) -> Presence:
    found = parse(message.payload)
    assert found is not None, message
    return found


async def watch(clients: Clients, *macs: str) -> RawClient:
    """Return a service that is told the presence of some devices."""
    service = await clients.service("fleet-watcher")
    for mac in macs:
        assert await service.subscribe(presence_topic(mac), qos=1) == 1
    return service


async def test_coming_and_going_is_told_with_the_epoch_of_the_connection(clients: Clients) -> None:
    watcher = await watch(clients, MAC)
    seen = []
    for _ in range(2):
        device = await clients.device(MAC)
        seen.append(await watcher.message())
        await device.leave()
        seen.append(await watcher.message())
    assert [(message.topic, message.qos, message.retain) for message in seen] == [(presence_topic(MAC), 1, False)] * 4
    first, first_end, second, second_end = map(presence, seen)
    assert [told.online for told in (first, first_end, second, second_end)] == [True, False, True, False]
    assert first.epoch == first_end.epoch < second.epoch == second_end.epoch < 2**53
    user = clients.keys.issue("device", MAC).username
    assert json.loads(seen[0].payload) == {"online": True, "epoch": first.epoch, "ip": "127.0.0.1", "user": user}
    assert json.loads(seen[1].payload) == {"online": False, "epoch": first.epoch}


async def test_lost_connection_is_told_as_offline(clients: Clients) -> None:
    watcher = await watch(clients, MAC)
    device = await clients.device(MAC)
    device.cut()
    assert [presence(await watcher.message()).online for _ in range(2)] == [True, False]


async def test_takeover_is_no_offline_and_the_new_connection_gets_all(clients: Clients) -> None:
    watcher = await watch(clients, MAC)
    service = await clients.service()
    old = await clients.device(MAC)
    new = await clients.device(MAC)
    await old.closed()
    for number in range(20):
        await service.publish(down_topic(MAC), b"%d" % number)
    assert [message.payload for message in await new.messages(b"19")] == [b"%d" % number for number in range(20)]
    await new.leave()
    first, second, end = [presence(await watcher.message()) for _ in range(3)]
    assert (first.online, second.online, end.online) == (True, True, False)
    assert first.epoch < second.epoch == end.epoch


async def test_takeover_of_a_persistent_session_is_no_offline(clients: Clients) -> None:
    watcher = await watch(clients, MAC)
    await clients.device(MAC, clean=False)
    device = await clients.device(MAC, clean=False)
    device.cut()
    told = [presence(await watcher.message()) for _ in range(3)]
    again = await clients.device(MAC, clean=False)
    await again.leave()
    told += [presence(await watcher.message()) for _ in range(2)]
    assert [one.online for one in told] == [True, True, False, True, False]
    assert await watcher.pending() == []


async def test_refused_connection_changes_nothing(clients: Clients) -> None:
    watcher, device = await watch(clients, MAC), await clients.device(MAC)
    stranger = await clients.stranger()
    assert await stranger.connect(MAC) != 0
    await stranger.closed()
    await device.leave()
    assert [presence(await watcher.message()).online for _ in range(2)] == [True, False]


async def test_whoever_reacts_to_presence_at_once_reaches_the_device(clients: Clients) -> None:
    watcher = await watch(clients, MAC)
    for number in range(100):
        device = await clients.stranger()
        await device.send(connect_packet(clients.keys.issue("device", MAC)))
        assert presence(await watcher.message()).online
        await watcher.publish(down_topic(MAC), b"welcome %d" % number)
        assert (await device.message()).payload == b"welcome %d" % number


async def test_slots_agree_with_the_topic_plan_for_any_mac(clients: Clients) -> None:
    chance = random.Random(7)
    macs = [":".join(f"{chance.randrange(256):02x}" for _ in range(6)) for _ in range(64)]
    watcher = await clients.service("fleet-watcher")
    await watcher.subscribe("fleet/presence/#")
    for mac in macs:
        await clients.device(mac)
    topics = {(await watcher.message()).topic for _ in macs}
    assert topics == {presence_topic(mac) for mac in macs}


async def test_services_have_no_presence(clients: Clients) -> None:
    watcher = await clients.service("fleet-watcher")
    await watcher.subscribe("fleet/presence/#")
    await (await clients.service("fleet-other")).leave()
    await clients.device(MAC)
    assert (await watcher.message()).topic == presence_topic(MAC)


async def test_epochs_are_higher_after_the_broker_was_killed(own_broker: MosquittoServer) -> None:
    epochs, boots = [], []
    for _ in range(2):
        async with Clients(own_broker) as clients:
            watcher = await watch(clients, MAC)
            await watcher.subscribe(BOOT, qos=1)
            boots.append(json.loads((await watcher.message()).payload)["epoch"])
            await clients.device(MAC)
            epochs.append(presence(await watcher.message()).epoch)
            own_broker.kill()
        own_broker.start()
    assert boots[0] < epochs[0] < boots[1] < epochs[1]


async def test_a_shard_hears_of_devices_that_came_before_it_after_a_start(own_broker: MosquittoServer) -> None:
    async with Clients(own_broker) as clients:
        await clients.device(MAC)
        other, shard, next_one = [await clients.service(f"fleet-{name}") for name in ("other", "shard-3", "shard-4")]
        wanted = presence_topic(MAC).rpartition("/")[0] + "/+"
        for service in (other, shard, next_one):
            await service.subscribe(wanted, qos=1)
        assert presence(await shard.message()).online
        assert await other.pending() == []
        assert await next_one.pending() == []


async def test_each_subscriber_is_told_the_epoch_of_the_start(clients: Clients) -> None:
    one, two = await clients.service("fleet-one"), await clients.service("fleet-two")
    for service in (one, two):
        await service.subscribe(BOOT, qos=1)
    first, second = await one.message(), await two.message()
    assert (first.topic, first.payload) == (second.topic, second.payload)
    assert await one.pending() == []
