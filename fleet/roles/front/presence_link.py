"""The front's own connection to the broker, on which it publishes that devices are gone."""

import asyncio
import logging
from typing import Final

from fleet.adapters.net.mqtt.session import tls_context
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.ground.errors import Unavailable
from fleet.ground.tasks import Backoff, keep_running
from fleet.roles.front.presence import PresenceOutbox
from fleet.wire import mqtt_packet as mqtt
from fleet.wire.mqtt_packet import Connect, Kind

log = logging.getLogger(__name__)

KEEPALIVE: Final = 20
_CONNECT_SECONDS: Final = 5.0
_CHUNK: Final = 64 * 1024


class PresenceLink:
    """Publishes what is in an `PresenceOutbox` at QoS 1, in order; connects again for ever.

    Args:
        address: The broker.
        login: Client id, user name and password.
        outbox: What is to be published.
    """

    def __init__(self, address: MqttAddress, login: Connect, outbox: PresenceOutbox) -> None:
        self._address = address
        self._greeting = mqtt.connect(login)
        self._outbox = outbox
        self._more = asyncio.Event()
        self._backoff = Backoff(limit=5.0)

    def announce(self, mac: str, message: bytes) -> None:
        """Publish a device's presence as soon as possible; only its latest one if that takes long."""
        self._outbox.put(mac, message)
        self._more.set()

    async def run(self) -> None:
        """Publish until cancelled."""
        await keep_running("front presence", self._connect, self._backoff)

    async def _connect(self) -> None:
        reader, writer = await self._open()
        self._outbox.rewind()
        try:
            splitter = mqtt.Splitter()
            writer.write(self._greeting)
            await self._greet(reader, splitter)
            self._backoff.reset()
            async with asyncio.TaskGroup() as group:
                sending = group.create_task(self._send(writer), name="front presence sender")
                await self._listen(reader, splitter)
                sending.cancel()
        finally:
            writer.transport.abort()
        raise Unavailable(f"{self._address}: lost the connection")

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                tls = tls_context(self._address.authorities) if self._address.tls else None
                return await asyncio.open_connection(self._address.host, self._address.port, ssl=tls)
        except OSError as error:  # TimeoutError is one
            raise Unavailable(f"{self._address}: {error or 'no answer'}") from error

    async def _greet(self, reader: asyncio.StreamReader, splitter: mqtt.Splitter) -> None:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                while not (packets := splitter.feed(await _read(reader))):
                    pass
        except TimeoutError:
            raise Unavailable(f"{self._address}: no CONNACK") from None
        if packets[0].kind != Kind.CONNACK or mqtt.parse_connack(packets[0]) != 0:
            raise Unavailable(f"{self._address}: refused the front's connection")

    async def _send(self, writer: asyncio.StreamWriter) -> None:
        while True:
            self._more.clear()
            writer.write(self._outbox.take())
            try:
                async with asyncio.timeout(KEEPALIVE / 2):
                    await writer.drain()
                    await self._more.wait()
            except TimeoutError:
                writer.write(mqtt.PINGREQ)
            except OSError:
                return  # the reader sees it too

    async def _listen(self, reader: asyncio.StreamReader, splitter: mqtt.Splitter) -> None:
        """Take acknowledgements until the broker closes or is silent, though it answers every ping."""
        try:
            while not splitter.fault:
                async with asyncio.timeout(KEEPALIVE):
                    packets = splitter.feed(await _read(reader))
                for packet in packets:
                    if packet.kind == Kind.PUBACK:
                        self._outbox.acknowledge(mqtt.parse_id(packet))
                        self._more.set()
        except (Unavailable, TimeoutError):
            return


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        data = await reader.read(_CHUNK)
    except OSError as error:
        raise Unavailable(str(error)) from error
    if not data:
        raise Unavailable("closed")
    return data
