import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from fleet.workbench.conformance.verdict import Failed
from fleet.workbench.sim.bootstrap.ota import MqttAccess
from fleet.workbench.sim.scripted.mqtt_connection import RawMqttConnection

LIMIT = 240.0
CONNACK = b"\x20\x02\x00\x00"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Messages = list[tuple[str, bytes]]


def publication(topic: bytes, payload: bytes, packet_id: int | None = None) -> bytes:
    number = b"" if packet_id is None else packet_id.to_bytes(2, "big")
    body = len(topic).to_bytes(2, "big") + topic + number + payload
    return bytes((0x30 if packet_id is None else 0x32, len(body))) + body


def access_to(port: int) -> MqttAccess:
    return MqttAccess(f"127.0.0.1:{port}", "id", "name", "word", "up/1", 60)


@asynccontextmanager
async def broker(serve: Serve) -> AsyncIterator[tuple[RawMqttConnection, Messages]]:
    """Give a line to a broker whose side of the only connection is `serve`."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    messages: Messages = []
    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    line = RawMqttConnection(access_to(port), lambda topic, payload: messages.append((topic, payload)), None)
    try:
        async with asyncio.timeout(LIMIT):
            yield line, messages
    finally:
        line.drop()
        server.close()


async def packet(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Return one short packet."""
    first, size = await reader.readexactly(2)
    return first, await reader.readexactly(size)


async def test_it_connects_as_firmware_does_and_tells_the_code() -> None:
    got: list[tuple[int, bytes]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await packet(reader))
        writer.write(CONNACK)
        await reader.read()

    async with broker(serve) as (line, _):
        assert await line.connect() == 0
        assert line.up
    kind, body = got[0]
    assert kind == 0x10
    assert body == b"\x00\x04MQTT\x04\xc2\x00\x3c\x00\x02id\x00\x04name\x00\x04word"


async def test_a_refusal_is_told_by_its_code() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await packet(reader)
        writer.write(b"\x20\x02\x00\x05")

    async with broker(serve) as (line, _):
        assert await line.connect(keepalive=4) == 5
        assert not line.up


@pytest.mark.parametrize("answer", [b"", b"\xd0\x00\x90\x03\x00\x01\x00"])
async def test_something_else_than_connack_is_a_failure(answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await packet(reader)
        writer.write(answer)

    async with broker(serve) as (line, _):
        with pytest.raises(Failed, match="without a CONNACK"):
            await line.connect()


async def test_a_closed_port_is_a_failure_that_names_the_address() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        line = RawMqttConnection(access_to(bound.getsockname()[1]), lambda topic, payload: None, None)
        with pytest.raises(Failed, match=r"no MQTT connection to 127\.0\.0\.1:"):
            await line.connect()


async def test_messages_are_handed_on_and_acknowledged_even_those_beside_connack() -> None:
    acknowledged: list[tuple[int, bytes]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await packet(reader)
        writer.write(CONNACK + publication(b"down", b"early") + publication(b"down", b"sure", 7)[:4])
        writer.write(publication(b"down", b"sure", 7)[4:])
        acknowledged.append(await packet(reader))

    async with broker(serve) as (line, messages):
        await line.connect()
        await line.run()
        assert line.closed.is_set()
        assert not line.up
    assert messages == [("down", b"early"), ("down", b"sure")]
    assert acknowledged == [(0x40, b"\x00\x07")]


async def test_a_subscription_returns_what_was_granted() -> None:
    got: list[tuple[int, bytes]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await packet(reader)
        writer.write(CONNACK)
        got.append(await packet(reader))
        writer.write(b"\x90\x03\x00\x01\x80")
        await reader.read()

    async with broker(serve) as (line, _), asyncio.TaskGroup() as group:
        await line.connect()
        reading = group.create_task(line.run())
        assert await line.subscribe("down/1") == b"\x80"
        reading.cancel()
    assert got == [(0x82, b"\x00\x01\x00\x06down/1\x01")]


async def test_what_is_no_mqtt_is_a_failure() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await packet(reader)
        writer.write(CONNACK + b"\x30\xff\xff\xff\xff\xff")
        await reader.read()

    async with broker(serve) as (line, _):
        await line.connect()
        with pytest.raises(Failed, match="what is no MQTT"):
            await line.run()


async def test_pings_are_sent_and_their_answers_counted() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await packet(reader)
        writer.write(CONNACK)
        for _ in range(3):
            assert await packet(reader) == (0xC0, b"")
            writer.write(b"\xd0\x00")

    async with broker(serve) as (line, _), asyncio.TaskGroup() as group:
        await line.connect()
        pinging = group.create_task(line.keep_alive(0.001))
        await line.run()
        pinging.cancel()
        assert line.pongs == 3


async def test_a_device_that_vanished_says_and_hears_nothing_but_stays_connected() -> None:
    sent = asyncio.Event()
    rest: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await packet(reader)
        writer.write(CONNACK)
        await sent.wait()
        writer.write(publication(b"down", b"unheard", 1))
        writer.write_eof()
        rest.set_result(await reader.read())

    async with broker(serve) as (line, messages), asyncio.TaskGroup() as group:
        await line.connect()
        group.create_task(line.run())
        line.vanish()
        line.publish(b"unsent")
        assert not line.closed.is_set()
        sent.set()
        await line.closed.wait()
        line.close()
        assert messages == []
        assert await rest == b""


async def test_an_orderly_end_says_so_and_a_dropped_connection_does_not() -> None:
    for end, expected in ((RawMqttConnection.close, b"\xe0\x00"), (RawMqttConnection.drop, b"")):
        rest: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def serve(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rest: asyncio.Future[bytes] = rest
        ) -> None:
            await packet(reader)
            writer.write(CONNACK)
            rest.set_result(await reader.read())

        async with broker(serve) as (line, _):
            await line.connect()
            end(line)
            assert await rest == expected
            assert not line.up


async def test_a_device_publishes_to_its_own_topic_or_another() -> None:
    got: list[tuple[int, bytes]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await packet(reader)
        writer.write(CONNACK)
        got.extend([await packet(reader), await packet(reader)])

    async with broker(serve) as (line, _):
        await line.connect()
        line.publish(b"{}")
        line.publish(b"{}", "up/2")
        await line.run()
    assert got == [(0x30, b"\x00\x04up/1{}"), (0x30, b"\x00\x04up/2{}")]
