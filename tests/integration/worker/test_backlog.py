"""What devices said while no worker was there, from a broker that gives it before it answers SUBSCRIBE, as rumqttd."""

import asyncio
import math
from types import SimpleNamespace

import pytest

from fleet.adapters.net.mqtt import session
from fleet.adapters.net.mqtt.inbox import LARGEST_HELD
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.adapters.redis.shards.owner import Owner
from fleet.ground.tasks import running
from fleet.roles.worker.ownership.lease import Lease
from fleet.roles.worker.ownership.shard import Shard, shard_session
from fleet.wire.dialects import XIAOZHI
from fleet.wire.identity import Credentials
from fleet.wire.messages import GoodbyeCommand
from fleet.wire.topics import up_topic
from tests.support.front_client import frame, publish_packet

MAC = "aa:bb:cc:dd:ee:ff"
LARGE = 60_000
KEPT = 2 * LARGEST_HELD // LARGE
CONNECTED = frame(0x20, b"\x01\x00")
"""CONNACK: the broker has kept the session."""


async def read_packet(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    kind, size, shift = (await reader.readexactly(1))[0], 0, 0
    while True:
        byte = (await reader.readexactly(1))[0]
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return kind >> 4, await reader.readexactly(size)


async def hand_over(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one session."""
    await read_packet(reader)
    writer.write(CONNECTED)
    for number in range(KEPT):
        writer.write(publish_packet(up_topic(MAC), bytes(LARGE), 1, packet_id=number + 1))
        await writer.drain()
    while True:
        kind, packet = await read_packet(reader)
        if kind == 8:
            filters = packet.count(b"fleet/")
            writer.write(frame(0x90, packet[:2] + b"\x01" * filters))


async def test_a_backlog_larger_than_what_is_handled_at_a_time_keeps_no_shard_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "CONNECT_SECONDS", 120.0)
    handled = 0

    async def receive(shard: Shard, kind: str, mac: str, payload: bytes) -> None:
        nonlocal handled
        shard.publish(mac, GoodbyeCommand("s"), XIAOZHI)
        handled += 1

    async def always(_: Shard) -> bool:
        return True

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await hand_over(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    address = MqttAddress("127.0.0.1", server.sockets[0].getsockname()[1])
    login = Credentials("fleet-shard-0", "service.test", "x")
    shard = Shard(
        0,
        Lease(Owner("w", "1"), 0.0, math.inf),
        lambda one: shard_session(one, address, login, 1),
        SimpleNamespace(receive=receive, take=lambda mac, payload: None, expect=lambda mac, payload, ended: payload),
        always,
    )
    async with server, running("shard", shard.run), asyncio.timeout(240):
        while not (shard.connected and handled >= KEPT):
            await asyncio.sleep(0.01)
    assert handled == KEPT
