"""The broker that pip installs, as a real child process, and the front before it."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fleet.ground.errors import Unavailable
from fleet.run.embedded.broker import EmbeddedBroker
from fleet.wire.identity import CredentialKeys
from fleet.wire.topics import down_topic, presence_topic, shard_client_id, shard_filters, slot, up_topic
from tests.support.front_client import PUBACK, FrontClient
from tests.support.front_server import LOOPBACK, device, presence, running_front, watcher

MAC = "02:00:00:00:00:07"


@pytest.fixture(autouse=True)
async def _no_connection_left() -> AsyncIterator[None]:
    yield
    await FrontClient.discard_all()


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[EmbeddedBroker]:
    server = EmbeddedBroker(tmp_path)
    await server.start()
    yield server
    await server.stop()


async def shard_session(broker: EmbeddedBroker, shard: int, shards: int = 16) -> FrontClient:
    client = await FrontClient.open(LOOPBACK, broker.port)
    assert await client.connect(shard_client_id(shard), clean=False) == 0
    filters = shard_filters(shard, shards)
    assert await client.subscribe(*((one, 1) for one in filters)) == bytes([1]) * len(filters)
    return client


async def test_session_of_a_shard_keeps_what_came_while_nobody_owned_it(broker: EmbeddedBroker) -> None:
    shard = slot(MAC) * 16 // 256
    owner = await shard_session(broker, shard)
    sender = await watcher(broker.port)
    for number in range(5):
        await sender.publish(up_topic(MAC), b"%d" % number)
    taken = [await owner.next(3) for _ in range(5)]
    assert {message.qos for message in taken} == {1}
    for message in taken[:2]:
        await owner.acknowledge(message)
    await owner.send(b"\xc0\0")
    await owner.next(13)
    owner.abort()
    for number in range(5, 200):
        await sender.publish(up_topic(MAC), b"%d" % number)
    await sender.ping()
    owner = await FrontClient.open(LOOPBACK, broker.port)
    assert await owner.connect(shard_client_id(shard), clean=False) == 0
    assert [int((await owner.message()).payload) for _ in range(2, 200)] == list(range(2, 200))


async def test_second_connection_of_a_shard_ends_the_first(broker: EmbeddedBroker) -> None:
    first = await shard_session(broker, 0)
    await shard_session(broker, 0)
    await first.closed()


async def test_large_message_passes(broker: EmbeddedBroker) -> None:
    reader = await watcher(broker.port, "fleet/x")
    sender = await watcher(broker.port)
    await sender.publish("fleet/x", b"x" * 200_000, 1, packet_id=1)
    await sender.next(PUBACK)
    assert len((await reader.message()).payload) == 200_000


def test_it_listens_on_the_loopback_only(broker: EmbeddedBroker) -> None:
    listening = [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines() if " 0A " in line]
    assert f"0100007F:{broker.port:04X}" in listening
    assert f"00000000:{broker.port:04X}" not in listening


async def test_crash_is_noticed_and_it_can_start_again_on_the_same_port(broker: EmbeddedBroker) -> None:
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGKILL)
    with pytest.raises(Unavailable, match="ended with code -9"):
        async with asyncio.timeout(240):
            await broker.run()
    url = broker.url
    await broker.start()
    assert broker.url == url
    await (await watcher(broker.port)).ping()


async def test_taken_port_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        with pytest.raises(Unavailable, match="did not start"):
            await EmbeddedBroker(tmp_path, taken.getsockname()[1]).start()


async def test_cancelled_run_stops_it(broker: EmbeddedBroker) -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(broker.run())
        await asyncio.sleep(0)
        task.cancel()
    assert broker.pid is None
    with pytest.raises(OSError, match="Connect call failed"):
        await FrontClient.open(LOOPBACK, broker.port)


async def test_device_that_never_subscribes_is_reached_through_the_front(
    broker: EmbeddedBroker, keys: CredentialKeys
) -> None:
    async with running_front(broker.url, keys) as front:
        worker = await watcher(broker.port, presence_topic(MAC), up_topic(MAC))
        client = await device(front, keys, MAC)
        on = await presence(worker, MAC)
        await client.publish(up_topic(MAC), b"up")
        assert (await worker.message()).payload == b"up"
        for qos in (0, 1):
            await worker.publish(down_topic(MAC), b"down", qos, packet_id=5)
            message = await client.message()
            assert (message.payload, message.qos) == (b"down", 0)
        await worker.next(PUBACK)
        assert await client.subscribe((down_topic(MAC), 1)) == b"\0"
        await worker.publish(down_topic(MAC), b"once")
        assert (await client.message()).payload == b"once"
        await client.ping()
        await client.close()
        assert await presence(worker, MAC) == {"online": False, "epoch": on["epoch"]}


async def test_takeover_through_the_front_sends_no_false_offline(broker: EmbeddedBroker, keys: CredentialKeys) -> None:
    async with running_front(broker.url, keys) as front:
        worker = await watcher(broker.port, presence_topic(MAC))
        first = await device(front, keys, MAC)
        second = await device(front, keys, MAC)
        await first.closed()
        assert [(await presence(worker, MAC))["online"] for _ in range(2)] == [True, True]
        await worker.publish(down_topic(MAC), b"for the second")
        assert (await second.message()).payload == b"for the second"
        await worker.ping()


async def test_front_that_dies_is_survived_by_the_broker_saying_offline(
    broker: EmbeddedBroker, keys: CredentialKeys
) -> None:
    worker = await watcher(broker.port, presence_topic(MAC))
    async with running_front(broker.url, keys) as front:
        await device(front, keys, MAC)
        on = await presence(worker, MAC)
    assert await presence(worker, MAC) == {"online": False, "epoch": on["epoch"]}


async def _watcher_in_the_end(port: int) -> FrontClient:
    """Return a client of a broker that has just begun: on a busy machine it may end its first connections."""
    async with asyncio.timeout(240):
        while True:
            try:
                return await watcher(port, presence_topic(MAC))
            except (AssertionError, OSError):
                await asyncio.sleep(0.1)


async def test_front_gets_over_a_crash_of_the_broker(broker: EmbeddedBroker, keys: CredentialKeys) -> None:
    async with running_front(broker.url, keys) as front:
        worker = await watcher(broker.port, presence_topic(MAC))
        client = await device(front, keys, MAC)
        before = await presence(worker, MAC)
        assert broker.pid is not None
        os.kill(broker.pid, signal.SIGKILL)
        await client.closed()
        await broker.start()
        worker = await _watcher_in_the_end(broker.port)
        await device(front, keys, MAC)
        news = await presence(worker, MAC)
        while not news["online"]:
            news = await presence(worker, MAC)
        assert news["epoch"] > before["epoch"]
