"""Devices that say hello without end, and models that call tools without end, on the broker with the plugin."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import redis

from fleet.adapters.net.mqtt.url import parse_mqtt_url
from fleet.ground.tasks import running
from fleet.roles.worker.app import Worker
from fleet.wire.edge_messages import CloseSessionCommand
from fleet.wire.identity import CredentialKeys
from fleet.wire.mqtt import packets
from fleet.wire.topics import shard_of, up_topic
from tests.integration.worker.scene import HELLO, Scene, asks, random_mac, says, stand, text, tool
from tests.integration.worker.scripted import PATIENCE, Device
from tests.support.descriptors import Descriptors
from tests.support.front_client import FrontClient
from tests.support.herd import Herd
from tests.support.mosquitto_server import MosquittoServer
from tests.support.whole_worker import until_whole

STORM = 2000
REACHES = 500
"""How many of them the broker lets through at once."""
SOME = 40
"""Descriptors that a worker may keep: connections to Redis."""


@asynccontextmanager
async def attacked(
    redis_url: str, broker: MosquittoServer, keys: CredentialKeys, **settings: Any
) -> AsyncIterator[tuple[Scene, Worker]]:
    """Run a worker; after the block it still serves a normal device, and holds no more than before."""
    async with stand(redis_url, broker, keys, **settings) as one:
        worker = Worker(one.resources, secrets.token_hex(4), parse_mqtt_url(broker.url))
        async with running("worker", worker.run):
            await until_whole(worker, one.resources.settings.shards)
            await serves(one)
            here, there = Descriptors(), Descriptors(broker.process.pid)
            yield one, worker
            await serves(one)
            await FrontClient.discard_all()
            await here.no_more(spare=SOME)
            await there.no_more()


async def serves(one: Scene) -> None:
    """Fail unless a normal device gets a session."""
    async with asyncio.timeout(PATIENCE):
        normal = await Device.connect(one.broker, one.keys, random_mac())
        await normal.say({**HELLO, "features": {}})
        welcome = await normal.hear_type("hello")
        assert len(welcome["udp"]["key"]) == 32
        await normal.say({"type": "goodbye", "session_id": welcome["session_id"]})
        await normal.close()


def sessions(redis_url: str) -> int:
    with redis.Redis.from_url(redis_url) as client:
        return sum(1 for _ in client.scan_iter("f:*:s:*"))


async def test_a_hello_storm_of_one_device_is_refused_and_then_ignored(
    redis_url: str, broker: MosquittoServer, keys: CredentialKeys
) -> None:
    async with attacked(redis_url, broker, keys, rate_hellos="0.001/20") as (_, worker):
        storm = await Device.connect(broker, keys, random_mac())
        for _ in range(STORM):
            await storm.say({**HELLO, "features": {}})
        async with asyncio.timeout(PATIENCE):
            while worker.counts["hello: too often"] < REACHES - 25:
                await asyncio.sleep(0.02)
        heard = []
        async with asyncio.timeout(PATIENCE):
            while [message["type"] for message in heard].count("alert") < 3:
                heard.append(await storm.hear())
        kinds = [message["type"] for message in heard if message["type"] != "tts"]
        assert 23 <= kinds.count("hello") <= 29
        assert kinds.count("hello") - 20 <= kinds.count("goodbye") + 5
        refused = [message for message in heard if message["type"] == "goodbye"]
        assert all(message["session_id"] for message in refused)
        assert len({message["udp"]["key"] for message in heard if message["type"] == "hello"}) == kinds.count("hello")
        assert sessions(redis_url) <= 1
        await storm.close()


@pytest.mark.parametrize("devices", [300, pytest.param(1000, marks=pytest.mark.slow)])
async def test_a_hello_storm_of_many_devices_leaves_no_session(
    redis_url: str, broker: MosquittoServer, keys: CredentialKeys, devices: int
) -> None:
    async with attacked(redis_url, broker, keys) as (one, _):
        macs = [f"0a:00:00:01:{number >> 8:02x}:{number & 255:02x}" for number in range(devices)]
        herd = Herd(broker, keys, macs)
        await herd.join()
        hello = json.dumps({**HELLO, "features": {}}).encode()
        for member in herd.members:
            for _ in range(2):
                member.send(packets.publish(up_topic(member.mac), hello))
        async with asyncio.timeout(PATIENCE):
            while sessions(redis_url) < devices:
                await asyncio.sleep(0.2)
        await serves(one)
        for mac in macs:
            live = await one.resources.sessions.read(mac)
            assert live is not None
            goodbye = json.dumps({"type": "goodbye", "session_id": live.id}).encode()
            herd.members[macs.index(mac)].send(packets.publish(up_topic(mac), goodbye))
        async with asyncio.timeout(PATIENCE):
            while sessions(redis_url):
                await asyncio.sleep(0.2)
        herd.close()


async def test_a_device_that_floods_its_own_topic_deafens_nobody_in_its_shard(
    redis_url: str, broker: MosquittoServer, keys: CredentialKeys
) -> None:
    async with attacked(redis_url, broker, keys) as (_, _worker):
        vandal = await Device.connect(broker, keys, random_mac())
        neighbour = random_mac()
        while shard_of(neighbour, 2) != shard_of(vandal.mac, 2):
            neighbour = random_mac()
        normal = await Device.connect(broker, keys, neighbour)
        word = b'{"type":"listen","state":"start","mode":"auto","session_id":"x"}'
        burst = packets.publish(up_topic(vandal.mac), word) * 200
        for number in range(400):
            assert vandal._client
            await vandal._client.send(burst)
            if number == 300:
                await normal.say({**HELLO, "features": {}})
        assert (await normal.hear_type("hello"))["session_id"]
        await vandal.close()
        await normal.close()


async def test_junk_of_a_device_is_dropped_and_others_are_served(
    redis_url: str, broker: MosquittoServer, keys: CredentialKeys
) -> None:
    junk = [
        b"",
        b"\0" * 60_000,
        b"[" * 60_000,
        b'{"type":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}",
        b'{"type":"hello","version":' + b"9" * 50_000 + b"}",
        b'{"type":"listen","state":"start","mode":"auto","session_id":"' + b"x" * 60_000 + b'"}',
        b'{"type":"mcp","payload":{"jsonrpc":"2.0","id":1e400,"result":{}}}',
        b'{"type":"hello","transport":"udp","audio_params":{"frame_duration":-1,"sample_rate":1e99}}',
    ]
    async with attacked(redis_url, broker, keys) as (_, _worker):
        vandal = await Device.connect(broker, keys, random_mac())
        for _ in range(20):
            for payload in junk:
                await vandal.say(payload)
        await vandal.close()


async def test_a_model_cannot_call_a_device_faster_than_it_may_be_called(
    redis_url: str, broker: MosquittoServer, keys: CredentialKeys
) -> None:
    async with attacked(redis_url, broker, keys, rate_tools="0.001/2") as (one, worker):
        await one.edge.until(CloseSessionCommand)  # of the normal device
        await one.reconnect()
        session = await one.prepare(tool("self.lamp.toggle"))
        for number in range(3):
            one.llm.script += [asks("lamp_toggle", call=f"c{number}"), says("Done.")]
        for number in range(3):
            turn = await one.utter(session, f"Toggle it, time {number}.")
            if number < 2:
                await one.device.answer(await one.device.hear_request("tools/call"), result=text("toggled"))
            await one.spoken()
            assert turn
        assert worker.counts["call: too often"] == 1
        told = [message.text for message in one.llm.asked[-1][0] if message.role == "tool"]
        assert told[-1].startswith("error: not done, the device is called too often")
