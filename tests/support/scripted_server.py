"""A server that does exactly what a test tells it to: bootstrap over HTTP, a broker for one device, and a UDP socket.

The broker pushes to a device that never subscribed, which no ordinary broker does. It knows CONNECT, PUBLISH at QoS 0,
SUBSCRIBE, PINGREQ and DISCONNECT. Everything goes over real sockets on the loopback interface.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from typing import Any

import numpy as np

from fleet.adapters.speech.opus import Encoder
from fleet.wire import packet

LIMIT = 240.0
_LOUD, _SILENT = 60, 4
"""Bytes of a datagram with speech at least, and datagrams without it after the end of speech."""
TOPIC = "fleet/up/7/02:00:00:00:00:01"


def tone(seconds: float, rate: int = 24_000, hertz: float = 440.0) -> bytes:
    """Return a loud tone as PCM."""
    at = np.arange(round(seconds * rate)) / rate
    return (np.sin(2 * np.pi * hertz * at) * 12_000).astype("<i2").tobytes()


class _Uplink(asyncio.DatagramProtocol):
    def __init__(self, server: "ScriptedServer") -> None:
        self.server = server

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.server.device_address = addr
        self.server.addresses.append(addr)
        self.server.datagrams.append(data)
        self.server.changed.set()


class ScriptedServer:
    """Records what the device does, and sends what the test says."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.datagrams: list[bytes] = []
        self.addresses: list[tuple[str, int]] = []
        self.connects: list[dict[str, Any]] = []
        self.subscriptions: list[str] = []
        self.disconnects = 0
        self.refuses = False
        """Whether CONNECT is refused."""
        self.junk: list[bytes] = []
        self.activations: list[bytes] = []
        self.activation_statuses: list[int] = []
        self.pages: dict[str, bytes] = {}
        self.pings = 0
        self.ota_requests: list[tuple[dict[str, str], bytes]] = []
        self.ota_answer: dict[str, Any] = {}
        self.device_address: tuple[str, int] | None = None
        self.changed = asyncio.Event()
        self.session = ""
        self.channel: packet.Channel | None = None
        self.sequence = 0
        self.timestamp = 0
        self.encoder = Encoder(24_000, 60)
        self._read = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._udp: asyncio.DatagramTransport | None = None
        self.udp_port = 0
        self.ota_url = ""

    @classmethod
    @asynccontextmanager
    async def running(cls, keepalive: int = 30) -> AsyncIterator["ScriptedServer"]:
        self = cls()
        loop = asyncio.get_running_loop()
        http = await asyncio.start_server(self._http, "127.0.0.1", 0)
        mqtt = await asyncio.start_server(self._mqtt, "127.0.0.1", 0)
        self._udp, _ = await loop.create_datagram_endpoint(lambda: _Uplink(self), ("127.0.0.1", 0))
        self.udp_port = self._udp.get_extra_info("sockname")[1]
        self.ota_url = f"http://127.0.0.1:{http.sockets[0].getsockname()[1]}/ota/"
        self.ota_answer = {
            "mqtt": {
                "endpoint": f"127.0.0.1:{mqtt.sockets[0].getsockname()[1]}",
                "client_id": "02:00:00:00:00:01",
                "username": "device.k1",
                "password": "secret",
                "publish_topic": TOPIC,
                "subscribe_topic": "null",
                "keepalive": keepalive,
            },
            "server_time": {"timestamp": 1_700_000_000_000, "timezone_offset": 0},
        }
        try:
            yield self
        finally:
            for server in (http, mqtt):
                server.close()
            self.drop_connections()
            self._udp.close()
            await asyncio.sleep(0)

    def drop_connections(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def expect(self, **wanted: Any) -> dict[str, Any]:
        """Return the next message that has these members, and forget those before it."""
        async with asyncio.timeout(LIMIT):
            while True:
                while self._read < len(self.messages):
                    message = self.messages[self._read]
                    self._read += 1
                    if all(message.get(key) == value for key, value in wanted.items()):
                        return message
                await self._change()

    async def expect_datagrams(self, count: int) -> None:
        """Wait until so many datagrams came in all."""
        async with asyncio.timeout(LIMIT):
            while len(self.datagrams) < count:
                await self._change()

    async def expect_speech(self, after: int = 0) -> None:
        """Wait until, after so many datagrams, somebody has spoken and then been silent."""

        def spoken() -> bool:
            loud = [len(datagram) > _LOUD for datagram in self.datagrams[after:]]
            return any(loud) and not any(loud[-_SILENT:])

        await self.expect_change(spoken)

    async def expect_connects(self, count: int) -> None:
        async with asyncio.timeout(LIMIT):
            while len(self.connects) < count:
                await self._change()

    async def expect_change(self, holds: Callable[[], bool]) -> None:
        """Wait until something about what the device did is so."""
        async with asyncio.timeout(LIMIT):
            while not holds():
                await self._change()

    def send(self, **message: Any) -> None:
        """Send a message; None leaves a member out."""
        self.send_raw(json.dumps({key: value for key, value in message.items() if value is not None}).encode())

    def send_raw(self, payload: bytes) -> None:
        topic = b"anything/at/all"
        body = len(topic).to_bytes(2, "big") + topic + payload
        for writer in self._writers:
            writer.write(b"\x30" + _remaining_length(len(body)) + body)

    def welcome(self, key: bytes | None = None, session: str | None = None, **changes: Any) -> bytes:
        """Answer a hello under a fresh key, or under the given one; return the key."""
        key = key or secrets.token_bytes(16)
        ssrc = secrets.randbits(32)
        self.session = session or secrets.token_hex(8)
        self.channel = packet.Channel(key, ssrc)
        self.sequence = self.timestamp = 0
        udp = {
            "server": "127.0.0.1",
            "port": self.udp_port,
            "encryption": "aes-128-ctr",
            "key": key.hex(),
            "nonce": packet.nonce(ssrc).hex(),
        }
        message = {
            "type": "hello",
            "version": 3,
            "transport": "udp",
            "session_id": self.session,
            "udp": udp,
            "audio_params": {"format": "opus", "sample_rate": 24_000, "channels": 1, "frame_duration": 60},
        }
        self.send(**{**message, **changes})
        return key

    def seal(self, payload: bytes) -> bytes:
        assert self.channel
        self.sequence += 1
        self.timestamp += 60
        return self.channel.seal(payload, self.timestamp, self.sequence)

    def send_datagram(self, datagram: bytes) -> None:
        assert self._udp
        assert self.device_address
        self._udp.sendto(datagram, self.device_address)

    async def speak(self, packets: int, period: float = 0.06, lead: int = 3) -> None:
        """Send so many packets of a tone in real time, the first `lead` of them 10 ms apart."""
        pcm, size = tone(0.06 * packets), self.encoder.frame_bytes
        for number in range(packets):
            self.send_datagram(self.seal(self.encoder.encode(pcm[number * size : (number + 1) * size])))
            await asyncio.sleep(0.01 if number < lead else period)

    async def _change(self) -> None:
        await self.changed.wait()
        self.changed.clear()

    async def _http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(asyncio.IncompleteReadError, OSError):
            await self._answer_page(reader, writer)

    async def _answer_page(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in head[1:] if ": " in line)
        lower = {name.lower(): value for name, value in headers.items()}
        body = await reader.readexactly(int(lower.get("content-length", 0)))
        writer.write(self._answer(head[0].split(" ")[1], lower, body))
        await writer.drain()
        self.changed.set()

    def _answer(self, path: str, headers: dict[str, str], body: bytes) -> bytes:
        """Return a page as the test has written it, or else what a bootstrap service answers."""
        if path in self.pages:
            return self.pages[path]
        if path.endswith("/activate"):
            self.activations.append(body)
            status = self.activation_statuses.pop(0) if self.activation_statuses else 200
            if status == 200:
                self.ota_answer.pop("activation", None)
            return b"HTTP/1.1 %d OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" % status
        self.ota_requests.append((headers, body))
        return page(json.dumps(self.ota_answer).encode())

    async def _mqtt(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                first = (await reader.readexactly(1))[0]
                body = await reader.readexactly(await _read_length(reader))
                self._take(first, body, writer)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    def _take(self, first: int, body: bytes, writer: asyncio.StreamWriter) -> None:
        match first >> 4:
            case 1:
                self.connects.append(
                    {"level": body[6], "flags": body[7], "keepalive": int.from_bytes(body[8:10], "big")}
                )
                writer.write(b"\x20\x02\x00\x05" if self.refuses else b"\x20\x02\x00\x00")
                if not self.refuses:
                    self._writers.add(writer)
            case 3:
                end = 2 + int.from_bytes(body[:2], "big")
                assert body[2:end].decode() == TOPIC
                assert first & 0x0F == 0, "QoS 0, not retained"
                self._keep(body[end:])
            case 8:
                end = 4 + int.from_bytes(body[2:4], "big")
                self.subscriptions.append(body[4:end].decode())
                assert body[end] == 1, "QoS 1"
                writer.write(b"\x90\x03" + body[:2] + b"\x01")
            case 14:
                self.disconnects += 1
            case 12:
                self.pings += 1
                writer.write(b"\xd0\x00")
        self.changed.set()

    def _keep(self, payload: bytes) -> None:
        try:
            message = json.loads(payload)
        except ValueError:
            message = None
        if isinstance(message, dict):
            self.messages.append(message)
        else:
            self.junk.append(payload)


def page(body: bytes, length: bytes = b"Content-Length") -> bytes:
    """Return an HTTP answer; `length` is the name of the header that says how long it is."""
    return b"HTTP/1.1 200 OK\r\nConnection: close\r\n%s: %d\r\n\r\n%s" % (length, len(body), body)


def _remaining_length(length: int) -> bytes:
    out = bytearray()
    while True:
        length, digit = divmod(length, 128)
        out.append(digit | (0x80 if length else 0))
        if not length:
            return bytes(out)


async def _read_length(reader: asyncio.StreamReader) -> int:
    value, shift = 0, 0
    while True:
        digit = (await reader.readexactly(1))[0]
        value |= (digit & 0x7F) << shift
        shift += 7
        if not digit & 0x80:
            return value
