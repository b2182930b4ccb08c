"""Storms and silence at Mosquitto with the plugin.

Who may connect, publish and subscribe, what is retained or too large, and junk before login is in
tests/integration/mosquitto; see tests/security/test_catalogue.py.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fleet.wire.identity import CredentialKeys, Credentials
from fleet.wire.topics import down_topic, up_topic
from tests.support.descriptors import Descriptors
from tests.support.mosquitto_server import MosquittoServer
from tests.support.mqtt_clients import Clients
from tests.support.mqtt_raw import RawClient, connect_packet
from tests.support.process import running

MANY = 300
BURST, A_SECOND = 500, 50
"""Messages of a device that pass."""
NORMAL, VICTIM, ATTACKER = "0a:00:00:00:02:01", "0a:00:00:00:02:02", "0a:00:00:00:02:03"


@asynccontextmanager
async def attacked(broker: MosquittoServer, clients: Clients) -> AsyncIterator[RawClient]:
    """Give a service that hears what devices say; after the block a normal device is served, and nothing is left."""
    worker = await clients.service()
    for topic in (up_topic(NORMAL), "fleet/presence/#"):
        assert await worker.subscribe(topic, 1) == 1
    await serves(clients, worker)
    there = Descriptors(broker.process.pid)
    yield worker
    await serves(clients, worker)
    await there.no_more()


async def serves(clients: Clients, worker: RawClient) -> None:
    """Fail unless a normal device is heard and told."""
    normal, said = await clients.device(NORMAL), secrets.token_bytes(8)
    await normal.publish(up_topic(NORMAL), said)
    while (await worker.message()).payload != said:
        pass
    await worker.publish(down_topic(NORMAL), said)
    assert (await normal.message()).payload == said
    await normal.leave()


async def test_a_storm_of_wrong_passwords_gets_nobody_in(own_broker: MosquittoServer, own_clients: Clients) -> None:
    async with attacked(own_broker, own_clients) as worker:
        await worker.pending()
        right = own_broker.keys.issue("device", VICTIM)
        for number in range(MANY):
            wrong = [
                Credentials(VICTIM, right.username, secrets.token_urlsafe(32)),
                Credentials(ATTACKER, right.username, right.password),
                Credentials(VICTIM, "service.new", right.password),
                Credentials(VICTIM, "device.gone", right.password),
            ][number % 4]
            client = await RawClient.open(own_broker.port)
            assert await client.connect(wrong) == 5
            await client.closed()
        assert await worker.pending() == [], "nobody was told as online"


@pytest.mark.parametrize("first", [b"", b"\x10\xff", connect_packet(VICTIM)[:-3]], ids=["silence", "two bytes", "half"])
async def test_silent_strangers_keep_no_device_out(
    own_broker: MosquittoServer, own_clients: Clients, first: bytes
) -> None:
    async with attacked(own_broker, own_clients) as worker:
        held = [await RawClient.open(own_broker.port) for _ in range(MANY)]
        for client in held:
            await client.send(first)
        await serves(own_clients, worker)
        for client in held:
            await client.discard()


async def test_a_device_that_floods_reaches_nobody_and_stops_nobody(
    own_broker: MosquittoServer, own_clients: Clients
) -> None:
    async with attacked(own_broker, own_clients) as worker:
        victim = await own_clients.device(VICTIM)
        attacker = await own_clients.device(ATTACKER)
        for number in range(2000):
            topic = [down_topic(VICTIM), up_topic(VICTIM), up_topic(NORMAL), "$SYS/x", "fleet/shard/0/lost"][number % 5]
            await attacker.publish(topic, b"junk")
        await serves(own_clients, worker)
        assert await victim.pending() == []
        heard = [message for message in await worker.pending() if message.payload == b"junk"]
        assert heard == []
        await attacker.leave()
        await victim.leave()


async def test_a_storm_of_takeovers_leaves_one_connection(own_broker: MosquittoServer, own_clients: Clients) -> None:
    async with attacked(own_broker, own_clients):
        held = [await RawClient.open(own_broker.port) for _ in range(100)]
        mine = own_broker.keys.issue("device", VICTIM)
        for client in held:
            assert await client.connect(mine) == 0
        async with asyncio.timeout(240):
            for client in held[:-1]:
                await client.closed()
        assert await held[-1].pending() == []
        await held[-1].leave()


async def test_a_flood_on_the_own_topic_is_cut_and_counted(own_broker: MosquittoServer, own_clients: Clients) -> None:
    async with attacked(own_broker, own_clients) as worker:
        assert await worker.subscribe(up_topic(ATTACKER), 1) == 1
        assert await worker.subscribe("$SYS/broker/fleet/refused/floods", 1) == 1
        attacker = await own_clients.device(ATTACKER)
        clock = asyncio.get_running_loop().time
        began, sent, floods, heard = clock(), 0, 0, 0
        while not floods:
            for _ in range(1500):
                await attacker.publish(up_topic(ATTACKER), b"flood")
            await attacker.pending()
            sent += 1500
            for message in await worker.pending():
                heard += message.payload == b"flood"
                floods = int(message.payload) if message.topic.startswith("$SYS") else floods
            await asyncio.sleep(0.2)  # until the broker tells its figures
        assert BURST <= heard <= BURST + A_SECOND * (clock() - began) + 1
        assert floods <= sent - BURST
        await attacker.leave()


@pytest.mark.parametrize("rate", ["", "-1", "many", "1 2", "100001"])
def test_a_broker_with_a_wrong_limit_does_not_start(tmp_path: Path, keys: CredentialKeys, rate: str) -> None:
    options = {"plugin_opt_keys_file": f"{tmp_path}/keys\nplugin_opt_messages_a_second {rate}"}
    broker = MosquittoServer(tmp_path, keys, options)
    broker.process.start_failing()
    assert "messages_a_second" in broker.log


async def test_a_limit_of_0_is_none(tmp_path: Path, keys: CredentialKeys) -> None:
    options = {"plugin_opt_keys_file": f"{tmp_path}/keys\nplugin_opt_messages_a_second 0"}
    with running(MosquittoServer(tmp_path, keys, options)) as broker:
        async with Clients(broker) as clients:
            worker, device = await clients.service(), await clients.device(NORMAL)
            assert await worker.subscribe(up_topic(NORMAL), 1) == 1
            for number in range(2000):
                await device.publish(up_topic(NORMAL), b"%d" % number)
            assert len(await worker.messages(b"1999")) == 2000
