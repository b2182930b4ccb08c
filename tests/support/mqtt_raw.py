"""A tiny MQTT client that writes and reads raw packets, so that tests see exactly what a broker sends.

MQTT 3.1.1, and as much of 5.0 as reason codes need. It shares no protocol code with fleet and has no reader task:
packets are read when a test asks for something; messages that come meanwhile are kept in order.
"""

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass

from fleet.wire.identity import Credentials

CONNACK, PUBLISH, PUBACK, SUBACK, UNSUBACK, PINGRESP = 2, 3, 4, 9, 11, 13
PATIENCE = 240.0
KEEPALIVE = 600
"""Seconds, the most that brokers allow: these clients ping only when a test says so."""


@dataclass(frozen=True)
class Message:
    """A PUBLISH as it came."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    packet_id: int


@dataclass(frozen=True)
class Will:
    topic: str
    payload: bytes
    retain: bool = False


def frame(first: int, body: bytes) -> bytes:
    """Return a packet: first byte, length of the rest in groups of 7 bits, the rest."""
    digits, left = bytearray(), len(body)
    while left > 127:
        digits.append(left & 127 | 128)
        left >>= 7
    return bytes((first, *digits, left)) + body


def string(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return len(raw).to_bytes(2) + raw


def connect_packet(
    who: Credentials | str, level: int = 4, *, clean: bool = True, will: Will | None = None, keepalive: int = KEEPALIVE
) -> bytes:
    """Return a CONNECT; `who` is a bare client id for a client without user name and password."""
    properties = b"\0" if level == 5 else b""
    flags = 2 * clean + (0x04 | 0x20 * will.retain if will else 0)
    rest = properties + string(will.topic) + string(will.payload) if will else b""
    if isinstance(who, Credentials):
        flags |= 0xC0
        rest += string(who.username) + string(who.password)
    client_id = who.client_id if isinstance(who, Credentials) else who
    head = string("MQTT") + bytes((level, flags)) + keepalive.to_bytes(2) + properties
    return frame(0x10, head + string(client_id) + rest)


class RawClient:
    """One TCP connection to a broker; every wait is bounded.

    Args:
        level: 4 for MQTT 3.1.1, 5 for MQTT 5.0.
        acknowledge: Whether messages of QoS 1 are acknowledged when they are read.
    """

    def __init__(
        self, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter], level: int, *, acknowledge: bool = True
    ) -> None:
        self._reader, self._writer = streams
        self._level = level
        self._acknowledge = acknowledge
        self._messages: deque[Message] = deque()
        self._packet_id = 0

    @classmethod
    async def open(cls, port: int, level: int = 4, *, acknowledge: bool = True) -> "RawClient":
        async with asyncio.timeout(PATIENCE):
            return cls(await asyncio.open_connection("127.0.0.1", port), level, acknowledge=acknowledge)

    async def connect(self, who: Credentials | str, *, clean: bool = True, will: Will | None = None) -> int:
        """Send CONNECT and return the CONNACK's code."""
        await self.send(connect_packet(who, self._level, clean=clean, will=will))
        return (await self.until(CONNACK))[1]

    async def subscribe(self, topic_filter: str, qos: int = 0) -> int:
        """Send SUBSCRIBE for one filter and return the SUBACK's code: the QoS, or 0x80 and above for a refusal."""
        properties = b"\0" if self._level == 5 else b""
        await self.send(frame(0x82, self._next_id() + properties + string(topic_filter) + bytes((qos,))))
        return (await self.until(SUBACK))[-1]

    async def unsubscribe(self, topic_filter: str) -> None:
        properties = b"\0" if self._level == 5 else b""
        await self.send(frame(0xA2, self._next_id() + properties + string(topic_filter)))
        await self.until(UNSUBACK)

    async def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> None:
        """Send a PUBLISH of QoS 0."""
        await self.send(frame(0x30 | retain, self._message(topic, b"", payload)))

    async def publish_acknowledged(self, topic: str, payload: bytes, *, retain: bool = False) -> int:
        """Send a PUBLISH of QoS 1 and return the PUBACK's reason (always 0 in MQTT 3.1.1)."""
        await self.send(frame(0x32 | retain, self._message(topic, self._next_id(), payload)))
        answer = await self.until(PUBACK)
        return answer[2] if len(answer) > 2 else 0

    async def message(self) -> Message:
        """Return the next message."""
        while not self._messages:
            await self._read()
        return self._messages.popleft()

    async def messages(self, last: bytes) -> list[Message]:
        """Return the next messages up to the one with the payload `last`."""
        found = [await self.message()]
        while found[-1].payload != last:
            found.append(await self.message())
        return found

    async def pending(self) -> list[Message]:
        """Return what the broker had sent before it answered a ping."""
        await self.send(b"\xc0\0")
        await self.until(PINGRESP)
        found = list(self._messages)
        self._messages.clear()
        return found

    async def leave(self) -> None:
        """Send DISCONNECT and wait until the broker closes."""
        await self.send(b"\xe0\0")
        await self.closed()

    async def closed(self) -> None:
        """Wait until the broker closes."""
        try:
            while True:
                await self._read()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.cut()

    def cut(self) -> None:
        """End the connection without DISCONNECT."""
        self._writer.transport.abort()

    async def discard(self) -> None:
        """Cut the connection and wait until nothing is left of it."""
        self.cut()
        with contextlib.suppress(OSError):
            async with asyncio.timeout(PATIENCE):
                await self._writer.wait_closed()

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        async with asyncio.timeout(PATIENCE):
            await self._writer.drain()

    def _next_id(self) -> bytes:
        self._packet_id += 1
        return self._packet_id.to_bytes(2)

    def _message(self, topic: str, packet_id: bytes, payload: bytes) -> bytes:
        return string(topic) + packet_id + (b"\0" if self._level == 5 else b"") + payload

    async def until(self, kind: int) -> bytes:
        """Return the rest of the next packet of this type; messages that come before it are kept."""
        while True:
            found, body = await self._read()
            if found == kind:
                return body

    async def _read(self) -> tuple[int, bytes]:
        async with asyncio.timeout(PATIENCE):
            first = (await self._reader.readexactly(1))[0]
            length = await self._read_length()
            body = await self._reader.readexactly(length)
        if first >> 4 == PUBLISH:
            await self._take(first, body)
        return first >> 4, body

    async def _read_length(self) -> int:
        length = shift = 0
        while True:
            digit = (await self._reader.readexactly(1))[0]
            length |= (digit & 127) << shift
            shift += 7
            if digit < 128:
                return length

    async def _take(self, first: int, body: bytes) -> None:
        qos = first >> 1 & 3
        at = 2 + int.from_bytes(body[:2])
        topic, packet_id = body[2:at].decode(), 0
        if qos:
            packet_id = int.from_bytes(body[at : at + 2])
            at += 2
        if self._level == 5:
            at += 1 + body[at]  # the properties; tests use none that are longer than 127 bytes
        self._messages.append(Message(topic, body[at:], qos, bool(first & 1), packet_id))
        if qos and self._acknowledge:
            await self.send(frame(0x40, packet_id.to_bytes(2)))
