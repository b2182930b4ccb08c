"""A tiny MQTT 3.1.1 client that writes and reads raw bytes, so that tests see exactly what is on the wire.

It shares no code with fleet: an error in fleet's codec must not hide itself here.
"""

import asyncio
import contextlib
from dataclasses import dataclass
from typing import ClassVar

CONNACK, PUBLISH, PUBACK, PUBREC, PUBCOMP, SUBACK, UNSUBACK, PINGRESP = 2, 3, 4, 5, 7, 9, 11, 13
PATIENCE = 240.0
KEEPALIVE = 600
"""Seconds, the most that brokers allow: these clients ping only when a test says so."""


@dataclass(frozen=True)
class Received:
    """One packet as it came."""

    kind: int
    flags: int
    body: bytes

    @property
    def topic(self) -> str:
        return self.body[2 : 2 + int.from_bytes(self.body[:2])].decode()

    @property
    def qos(self) -> int:
        return self.flags >> 1 & 3

    @property
    def packet_id(self) -> int:
        at = 2 + int.from_bytes(self.body[:2]) if self.kind == PUBLISH else 0
        return int.from_bytes(self.body[at : at + 2])

    @property
    def payload(self) -> bytes:
        return self.body[2 + int.from_bytes(self.body[:2]) + (2 if self.qos else 0) :]


def frame(first: int, body: bytes) -> bytes:
    length, left = bytearray(), len(body)
    while True:
        left, digit = divmod(left, 128)[0], left % 128
        length.append(digit | (0x80 if left else 0))
        if not left:
            return bytes((first,)) + bytes(length) + body


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return len(raw).to_bytes(2) + raw


def connect_packet(
    client_id: str,
    username: str | None = None,
    password: str | None = None,
    *,
    clean: bool = True,
    keepalive: int = KEEPALIVE,
    will: tuple[str, bytes, int] | None = None,
    level: int = 4,
) -> bytes:
    flags = 2 * clean + (0x80 if username is not None else 0) + (0x40 if password is not None else 0)
    tail = text(client_id)
    if will:
        flags |= 4 | will[2] << 3
        tail += text(will[0]) + text(will[1])
    tail += b"".join(text(part) for part in (username, password) if part is not None)
    name = "MQIsdp" if level == 3 else "MQTT"
    properties = b"\0" if level == 5 else b""
    return frame(0x10, text(name) + bytes((level, flags)) + keepalive.to_bytes(2) + properties + tail)


def publish_packet(topic: str, payload: bytes, qos: int = 0, *, packet_id: int = 1, retain: bool = False) -> bytes:
    middle = packet_id.to_bytes(2) if qos else b""
    return frame(0x30 | qos << 1 | retain, text(topic) + middle + payload)


def subscribe_packet(packet_id: int, *filters: tuple[str, int]) -> bytes:
    return frame(0x82, packet_id.to_bytes(2) + b"".join(text(name) + bytes((qos,)) for name, qos in filters))


class FrontClient:
    """One TCP connection; every wait is bounded."""

    opened: ClassVar[list["FrontClient"]] = []
    """All that a test opened, for `discard_all`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.loop = asyncio.get_running_loop()

    @classmethod
    async def open(cls, host: str, port: int) -> "FrontClient":
        async with asyncio.timeout(PATIENCE):
            client = cls(*await asyncio.open_connection(host, port))
        cls.opened.append(client)
        return client

    @classmethod
    async def discard_all(cls) -> None:
        """Cut every connection and wait until nothing is left of them; those of ended loops went with them."""
        while cls.opened:
            client = cls.opened.pop()
            writer = client.writer
            if client.loop is not asyncio.get_running_loop():
                continue
            # A transport that closed after it had sent the rest knows no loop any more.
            with contextlib.suppress(AttributeError):
                writer.transport.abort()
            with contextlib.suppress(OSError):
                async with asyncio.timeout(PATIENCE):
                    await writer.wait_closed()

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        async with asyncio.timeout(PATIENCE):
            await self.writer.drain()

    async def receive(self) -> Received | None:
        """Return the next packet, or None when the other side has closed."""
        try:
            async with asyncio.timeout(PATIENCE):
                first = (await self.reader.readexactly(1))[0]
                length, shift = 0, 0
                while True:
                    digit = (await self.reader.readexactly(1))[0]
                    length |= (digit & 0x7F) << shift
                    shift += 7
                    if digit < 0x80:
                        break
                return Received(first >> 4, first & 15, await self.reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def next(self, kind: int) -> Received:
        """Return the next packet, which must be of this kind."""
        packet = await self.receive()
        assert packet is not None, "closed"
        assert packet.kind == kind, packet
        return packet

    async def connect(self, client_id: str, username: str | None = None, password: str | None = None, **more) -> int:
        """Send CONNECT; return the CONNACK's code."""
        await self.send(connect_packet(client_id, username, password, **more))
        return (await self.next(CONNACK)).body[1]

    async def subscribe(self, *filters: tuple[str, int], packet_id: int = 7) -> bytes:
        """Send SUBSCRIBE; return the codes of the SUBACK, which must be the next packet."""
        await self.send(subscribe_packet(packet_id, *filters))
        answer = await self.next(SUBACK)
        assert answer.packet_id == packet_id
        return answer.body[2:]

    async def publish(self, topic: str, payload: bytes, qos: int = 0, **more) -> None:
        await self.send(publish_packet(topic, payload, qos, **more))

    async def acknowledge(self, packet: Received) -> None:
        if packet.qos:
            await self.send(frame(0x40, packet.packet_id.to_bytes(2)))

    async def message(self) -> Received:
        """Return the next PUBLISH, acknowledged; it must be the next packet."""
        packet = await self.next(PUBLISH)
        await self.acknowledge(packet)
        return packet

    async def ping(self) -> None:
        """Wait until everything sent before has gone through: PINGRESP must be the next packet."""
        await self.send(b"\xc0\0")
        await self.next(PINGRESP)

    async def closed(self) -> None:
        """Wait until the other side closes; whatever it still sends is ignored."""
        while await self.receive() is not None:
            pass

    def abort(self) -> None:
        """Cut the connection without a goodbye."""
        self.writer.transport.abort()

    async def close(self) -> None:
        if not self.writer.transport.is_closing():
            self.writer.write(b"\xe0\0")
            self.writer.close()
