"""Sessions of shards, change of keys, and what a broker must survive."""

import asyncio
import contextlib
import random
import time
from itertools import islice

from fleet.wire.identity import CredentialKeys
from fleet.wire.topics import down_topic, presence_topic, shard_client_id, shard_filters, shard_of, up_topic
from tests.support.mosquitto_server import MosquittoServer
from tests.support.mqtt_clients import Clients
from tests.support.mqtt_raw import RawClient, connect_packet, frame, string

MAC = "02:5e:55:00:00:01"
PROBE = "02:5e:55:00:00:ff"
SHARD, SHARDS = 3, 16
REFUSALS_LOGGED, REFUSALS_SECONDS = 10, 10
"""So many in each span of so many seconds."""


def macs_of_shard(count: int) -> list[str]:
    macs = (f"02:5e:55:01:{number >> 8:02x}:{number & 255:02x}" for number in range(4096))
    return list(islice((mac for mac in macs if shard_of(mac, SHARDS) == SHARD), count))


async def own_shard(clients: Clients) -> RawClient:
    return await clients.service(shard_client_id(SHARD), clean=False)


async def test_shard_session_gets_what_devices_sent_while_nobody_owned_it(own_clients: Clients) -> None:
    owner = await own_shard(own_clients)
    for topic in shard_filters(SHARD, SHARDS):
        assert await owner.subscribe(topic, qos=1) == 1
    macs = macs_of_shard(4)
    devices = [await own_clients.device(mac) for mac in macs]
    await owner.pending()
    owner.cut()
    await owner.discard()
    for number in range(500):
        await devices[number % 4].publish(up_topic(macs[number % 4]), b"%d" % number)
    for device in devices:
        await device.pending()
    await devices[0].publish(up_topic(macs[0]), b"500")
    await devices[0].pending()
    owner = await own_shard(own_clients)
    found = await owner.messages(b"500")
    by_device = {mac: [int(message.payload) for message in found if message.topic == up_topic(mac)] for mac in macs}
    assert by_device == {mac: list(range(at, 501, 4)) for at, mac in enumerate(macs)}
    assert {message.qos for message in found} == {1}


async def test_second_owner_ends_the_first_and_gets_what_it_had_not_acknowledged(own_clients: Clients) -> None:
    mac = macs_of_shard(1)[0]
    zombie = await own_clients.stranger(acknowledge=False)
    assert await zombie.connect(own_clients.keys.issue("service", shard_client_id(SHARD)), clean=False) == 0
    await zombie.subscribe(up_topic(mac), qos=1)
    device = await own_clients.device(mac)
    for number in range(50):
        await device.publish(up_topic(mac), b"%d" % number)
    assert (await zombie.message()).payload == b"0"
    owner = await own_shard(own_clients)
    await zombie.closed()
    assert [int(message.payload) for message in await owner.messages(b"49")] == list(range(50))


async def until_known(clients: Clients, keys: CredentialKeys, *, valid: bool) -> None:
    """Connect until the broker takes, or no longer takes, these keys: a reload does not say when it is done."""
    async with asyncio.timeout(240):
        while (await (await clients.stranger()).connect(keys.issue("device", PROBE)) == 0) != valid:
            await asyncio.sleep(0.05)


async def test_reload_takes_new_keys_and_retires_old_ones(own_broker: MosquittoServer, own_clients: Clients) -> None:
    older, newer = own_broker.keys, CredentialKeys("newer:a-key-for-tests-only-3")
    with_old = await own_clients.device("02:5e:55:00:00:02")
    own_broker.write_keys(newer.as_file() + older.as_file())
    own_broker.reload()
    await until_known(own_clients, newer, valid=True)
    await until_known(own_clients, older, valid=True)
    with_new = await own_clients.stranger()
    assert await with_new.connect(newer.issue("device", "02:5e:55:00:00:03")) == 0
    assert await with_old.pending() == []
    own_broker.write_keys(newer.as_file())
    own_broker.reload()
    await until_known(own_clients, older, valid=False)
    await until_known(own_clients, newer, valid=True)
    await with_old.closed()
    assert await with_new.pending() == []


async def test_reload_tells_no_presence_but_of_those_it_ends(own_broker: MosquittoServer, own_clients: Clients) -> None:
    newest = CredentialKeys("new:a-key-for-tests-only-1")
    watcher = await own_clients.service()
    await (await own_clients.device("02:5e:55:00:00:04", clean=False)).leave()
    await own_clients.device("02:5e:55:00:00:05")
    retired = await own_clients.stranger()
    assert await retired.connect(CredentialKeys("old:a-key-for-tests-only-2").issue("device", "02:5e:55:00:00:06")) == 0
    await watcher.subscribe("fleet/presence/#", qos=1)
    own_broker.write_keys(newest.as_file())
    own_broker.reload()
    message = await watcher.message()
    assert message.topic == presence_topic("02:5e:55:00:00:06")
    assert b'"online":false' in message.payload
    await own_clients.device(MAC)
    assert (await watcher.message()).topic == presence_topic(MAC)


async def test_offline_session_is_not_reachable_after_a_reload(
    own_broker: MosquittoServer, own_clients: Clients
) -> None:
    service = await own_clients.service(level=5)
    await (await own_clients.device(MAC, clean=False)).leave()
    own_broker.write_keys(own_broker.keys.as_file() + "newer a-key-for-tests-only-3\n")
    own_broker.reload()
    await until_known(own_clients, CredentialKeys("newer:a-key-for-tests-only-3"), valid=True)
    assert await service.publish_acknowledged(down_topic(MAC), b"late") == 0x87


async def test_reload_keeps_old_keys_when_the_new_file_is_wrong(
    own_broker: MosquittoServer, own_clients: Clients
) -> None:
    own_broker.write_keys("k1 short\n")
    own_broker.reload()
    async with asyncio.timeout(240):
        while "the old keys stay valid" not in own_broker.log:
            await own_clients.device(MAC)
            await asyncio.sleep(0.05)
    await own_clients.device(MAC)
    assert "has a key of fewer than 16 characters" in own_broker.log


async def test_delivery_goes_on_through_a_reload(own_broker: MosquittoServer, own_clients: Clients) -> None:
    device, service = await own_clients.device(MAC), await own_clients.service()
    own_broker.reload()
    for number in range(200):
        await service.publish(down_topic(MAC), b"%d" % number)
    assert len(await device.messages(b"199")) == 200


def test_broker_does_not_start_without_keys(own_broker: MosquittoServer) -> None:
    for text, complaint in (("", "holds no key"), ("k1\n", "is not `id key`")):
        own_broker.stop()
        own_broker.write_keys(text)
        own_broker.process.start_failing()
        assert complaint in own_broker.log


def junk(chance: random.Random, good: bytes) -> bytes:
    """Return bytes of one of four kinds: noise, a noisy packet, a damaged good one, a good one cut off."""
    noise = chance.randbytes(chance.randrange(1, 200))
    damaged = bytearray(good)
    for _ in range(chance.randrange(1, 6)):
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    return chance.choice([noise, frame(0x10, noise), bytes(damaged), good[: chance.randrange(1, len(good))]])


async def test_broker_survives_junk(own_broker: MosquittoServer, own_clients: Clients) -> None:
    chance = random.Random(1)
    pid = own_broker.process.pid
    hello = connect_packet(own_broker.keys.issue("device", MAC))
    follow_up = [
        frame(0x30, string(up_topic(MAC)) + b"x"),
        frame(0x82, b"\0\1" + string(down_topic(MAC)) + b"\1"),
        frame(0x30, string(down_topic(MAC)) + b"x"),
    ]
    for _ in range(300):
        stranger = await own_clients.stranger()
        with contextlib.suppress(ConnectionError):
            await stranger.send(hello if chance.random() < 0.5 else junk(chance, hello))
            await stranger.send(junk(chance, chance.choice(follow_up)) * 3)
        await stranger.discard()
    device, service = await own_clients.device(MAC), await own_clients.service()
    await service.publish(down_topic(MAC), b"alive")
    assert (await device.messages(b"alive"))[-1].payload == b"alive"
    assert own_broker.process.alive
    assert own_broker.process.pid == pid


async def test_refusals_are_logged_but_not_without_end(own_broker: MosquittoServer, own_clients: Clients) -> None:
    begun = time.monotonic()
    for _ in range(50):
        await (await own_clients.stranger()).connect(MAC)
    spans = 2 + (time.monotonic() - begun) // REFUSALS_SECONDS
    assert 0 < own_broker.log.count("fleet: refused") <= REFUSALS_LOGGED * spans


async def test_broker_ends_in_order(own_broker: MosquittoServer, own_clients: Clients) -> None:
    # It listens before it handles signals, and answers only then.
    await own_clients.device(MAC)
    assert own_broker.process.stop() == 0
