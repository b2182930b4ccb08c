"""The MQTT connection of a scripted device: it writes each packet itself.

The simulated device uses aiomqtt, so that it is implemented independently of the server (docs/adr/0002). A test needs
what no library offers: the code of a CONNACK, no ping, a keep-alive of its own, silence on an open connection (M6),
the end of a connection as an event, and 2000 connections in one process (M11).
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable

from fleet.wire.identity import Credentials
from fleet.wire.mqtt import packets
from fleet.wire.mqtt.packets import Connack, Connect, Publish, Suback
from fleet.wire.mqtt.reader import Broken, BrokerReader, FromBroker, Pingresp
from fleet.workbench.sim.bootstrap.ota import MqttAccess
from fleet.workbench.sim.records.expectation import Failed

TLS_PORT = 8883
CONNECT_SECONDS = 10.0
_CHUNK = 65_536


class RawMqttConnection:
    """One TCP connection from CONNECT to its end.

    Args:
        access: What bootstrap said.
        on_message: Called with topic and payload of every PUBLISH.
        tls: Trust for port 8883.
    """

    def __init__(
        self, access: MqttAccess, on_message: Callable[[str, bytes], None], tls: ssl.SSLContext | None
    ) -> None:
        self._access = access
        self._on_message = on_message
        self._tls = tls
        self._packets = BrokerReader()
        self._ready: deque[FromBroker] = deque()
        self._answers: asyncio.Queue[FromBroker] = asyncio.Queue(16)
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._silent = False
        self.up = False
        self.pongs = 0
        self.closed = asyncio.Event()
        """Set when the server has closed the connection."""

    async def connect(self, keepalive: int | None = None) -> int:
        """Connect with a clean session; return the CONNACK's code, 0 for success.

        Raises:
            Failed: There was no answer, or the server closed the connection without one.
        """
        host, _, port = self._access.endpoint.partition(":")
        number = int(port) if port else TLS_PORT
        tls = (self._tls or ssl.create_default_context()) if number == TLS_PORT else None
        access = self._access
        credentials = Credentials(access.client_id, access.username, access.password)
        frame = packets.connect(Connect.of(credentials, keepalive or access.keepalive))
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                self._reader, self._writer = await asyncio.open_connection(host, number, ssl=tls)
                self._writer.write(frame)
                answer = await self._next()
        except (OSError, TimeoutError) as error:
            self.drop()
            raise Failed(f"no MQTT connection to {access.endpoint}: {str(error) or 'no answer'}") from error
        if not isinstance(answer, Connack):
            self.drop()
            raise Failed("the broker closed the connection without a CONNACK")
        self.up = answer.code == 0
        return answer.code

    async def run(self) -> None:
        """Read until the connection ends.

        Raises:
            Failed: The server sent what is no MQTT.
        """
        try:
            while (packet := await self._next()) is not None:
                if isinstance(packet, Broken):
                    raise Failed(f"the broker sent what is no MQTT: {packet.reason}")
                if isinstance(packet, Suback) and not self._answers.full():
                    self._answers.put_nowait(packet)
        finally:
            self.drop()
            self.closed.set()

    async def keep_alive(self, seconds: float) -> None:
        """Ping every so many seconds for ever."""
        while True:
            await asyncio.sleep(seconds)
            self.write(packets.PINGREQ)

    async def subscribe(self, topic: str) -> bytes:
        """Subscribe at QoS 1 while `run` reads; return the codes granted.

        Raises:
            Failed: There was no answer.
        """
        self.write(packets.subscribe([topic]))
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                answer = await self._answers.get()
        except TimeoutError as error:
            raise Failed(f"no SUBACK within {CONNECT_SECONDS:g} s") from error
        return answer.codes if isinstance(answer, Suback) else b""

    def publish(self, payload: bytes, topic: str = "") -> None:
        """Publish at QoS 0 on the device's topic, or on another one."""
        self.write(packets.publish(topic or self._access.publish_topic, payload))

    def write(self, frame: bytes) -> None:
        if self._writer and not self._writer.is_closing() and not self._silent:
            self._writer.write(frame)

    def vanish(self) -> None:
        """From now on send and hear nothing, with the connection left open: a device without power."""
        self._silent = True

    def close(self) -> None:
        """End the connection with a DISCONNECT, or without a word after `vanish`."""
        self.write(packets.DISCONNECT)
        self.drop()

    def drop(self) -> None:
        """End the connection without a DISCONNECT."""
        self.up = False
        if self._writer:
            self._writer.close()

    async def _next(self) -> FromBroker | None:
        """Return the next packet that is neither a message nor a pong; None at the end of the connection."""
        while not self._ready and self._reader is not None:
            try:
                data = await self._reader.read(_CHUNK)
            except OSError:
                return None
            if not data:
                return None
            if not self._silent:
                for packet in self._packets.feed(data):
                    self._sort(packet)
        return self._ready.popleft() if self._ready else None

    def _sort(self, packet: FromBroker) -> None:
        if isinstance(packet, Publish):
            self._take(packet)
        elif isinstance(packet, Pingresp):
            self.pongs += 1
        else:
            self._ready.append(packet)

    def _take(self, packet: Publish) -> None:
        if packet.packet_id:
            self.write(packets.pubacks([packet.packet_id]))
        self._on_message(packet.topic, packet.payload)
