"""Silence, junk and storms before login, at the front on a broker without plugin.

Who may connect, publish and subscribe: tests/integration/front/test_front.py, tests/unit/roles/front/test_gate.py.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from fleet.roles.front import Front, FrontLimits
from fleet.wire.identity import CredentialKeys
from fleet.wire.topics import up_topic
from tests.support.descriptors import Descriptors
from tests.support.front_client import FrontClient, connect_packet, frame
from tests.support.front_server import LOOPBACK, PATIENT, device, running_front, watcher
from tests.support.mosquitto_server import MosquittoServer

MANY = 300
NORMAL = "0a:00:00:00:01:01"
VICTIM = "0a:00:00:00:01:02"


@asynccontextmanager
async def attacked_front(
    broker: MosquittoServer, keys: CredentialKeys, limits: FrontLimits | None = None
) -> AsyncIterator[Front]:
    """Run a front; after the block it still serves, and has no more connections and descriptors than before."""
    async with running_front(broker.url, keys, limits) as front:
        await serves(front, broker, keys)
        here, there = Descriptors(), Descriptors(broker.process.pid)
        yield front
        await serves(front, broker, keys)
        async with asyncio.timeout(240):
            while front.connections or front._unauthenticated:
                await asyncio.sleep(0.02)
        await FrontClient.discard_all()
        await here.no_more()
        await there.no_more()


async def serves(front: Front, broker: MosquittoServer, keys: CredentialKeys) -> None:
    """Fail unless a normal device is let in and heard."""
    worker = await watcher(broker.port, up_topic(NORMAL))
    normal = await device(front, keys, NORMAL)
    said = secrets.token_bytes(8)
    await normal.publish(up_topic(NORMAL), said)
    assert (await worker.message()).payload == said
    await normal.close()
    await worker.close()


async def strangers(front: Front, first: bytes, count: int = MANY) -> None:
    """Open connections that say so much and no more."""
    for _ in range(count):
        client = await FrontClient.open(LOOPBACK, front.port)
        with contextlib.suppress(ConnectionError):
            await client.send(first)


@pytest.mark.parametrize(
    "first",
    [b"", b"\x10", b"\x10\xff\xff\xff", connect_packet(VICTIM, "device.new", "x" * 40)[:-20]],
    ids=["silence", "one byte", "a length without an end", "half a login"],
)
async def test_silent_strangers_keep_no_device_out(
    plain_broker: MosquittoServer, keys: CredentialKeys, first: bytes
) -> None:
    # Nobody is closed because of the time: opening so many connections may take any.
    limits = replace(PATIENT, unauthenticated=50)
    async with attacked_front(plain_broker, keys, limits) as front:
        await strangers(front, first)
        await serves(front, plain_broker, keys)
        await FrontClient.discard_all()
        assert front.counts["crowded out"] >= MANY - 60 or front.counts["malformed"] >= MANY - 60


@pytest.mark.parametrize(
    "first",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
        bytes(64),
        b"\xff" * 64,
        b"\x10\xff\xff\xff\x7f",
        frame(0x10, b"\0\4MQTT\4\xc2"),
        frame(0x30, b"\0\1x"),
    ],
    ids=["http", "tls", "zeros", "ones", "256 megabytes", "short connect", "publish first"],
)
async def test_junk_before_login_is_closed_and_counted(
    plain_broker: MosquittoServer, keys: CredentialKeys, first: bytes
) -> None:
    async with attacked_front(plain_broker, keys) as front:
        before = sum(front.counts.values())
        await strangers(front, first, 50)
        async with asyncio.timeout(240):
            while sum(front.counts.values()) < before + 50:
                await asyncio.sleep(0.02)


async def test_a_storm_of_wrong_passwords_gets_nobody_in(plain_broker: MosquittoServer, keys: CredentialKeys) -> None:
    async with attacked_front(plain_broker, keys) as front:
        for number in range(MANY):
            guess = secrets.token_urlsafe(32) if number else ""
            client = await FrontClient.open(LOOPBACK, front.port)
            assert await client.connect(VICTIM, "device.new", guess) == 5
            await client.closed()
        assert front.counts["not authorised"] == MANY


async def test_a_storm_of_takeovers_leaves_one_connection(plain_broker: MosquittoServer, keys: CredentialKeys) -> None:
    async with attacked_front(plain_broker, keys) as front:
        mine = keys.issue("device", VICTIM)
        for _ in range(100):
            client = await FrontClient.open(LOOPBACK, front.port)
            await client.send(connect_packet(VICTIM, mine.username, mine.password))
        async with asyncio.timeout(240):
            while front.connections > 1:
                await asyncio.sleep(0.02)
        await FrontClient.discard_all()


async def test_a_device_that_floods_is_cut_and_others_are_heard(
    plain_broker: MosquittoServer, keys: CredentialKeys
) -> None:
    # So few may pass that a busy machine, which needs seconds for all of them, makes no difference.
    async with attacked_front(plain_broker, keys, replace(PATIENT, messages=1)) as front:
        worker = await watcher(plain_broker.port, up_topic(VICTIM))
        flooder = await device(front, keys, VICTIM)
        for number in range(2000):
            await flooder.publish(up_topic(VICTIM), b"%d" % number)
        await serves(front, plain_broker, keys)
        async with asyncio.timeout(240):
            while front.counts["flood"] < 1000:
                await asyncio.sleep(0.02)
        await flooder.ping()
        assert (await worker.message()).payload == b"0"
        await flooder.close()
        again = await device(front, keys, VICTIM)
        before = front.counts["flood"]
        for _ in range(400):
            await again.publish(up_topic(VICTIM), b"again", 0)
        await again.ping()
        assert front.counts["flood"] > before
        await again.close()
        await worker.close()
