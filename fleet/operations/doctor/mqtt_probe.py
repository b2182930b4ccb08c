"""An MQTT connection with access to single packets, which a client library hides."""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Literal

from fleet.adapters.net.mqtt.session import tls_context
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.ground.errors import Unavailable
from fleet.wire.identity import Credentials
from fleet.wire.mqtt import packets
from fleet.wire.mqtt.packets import SUBSCRIBE_DENIED, Connack, Connect, Publish, Suback
from fleet.wire.mqtt.reader import Broken, BrokerReader, FromBroker, Pingresp

CONNECT_SECONDS = 4.0
ANSWER_SECONDS = 3.0
_KEEPALIVE = 60
_CHUNK = 65_536
_MOST_KEPT = 1_000

Stage = Literal["reach", "tls", "login", "lost"]


class MqttFault(Unavailable):
    """A connection failed or broke; `stage` says at which step."""

    def __init__(self, stage: Stage, message: str) -> None:
        super().__init__(message)
        self.stage = stage


class MqttProbe:
    """One connection. Every wait has a time limit; packets are read only during a wait."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._packets = BrokerReader()
        self._messages: deque[Publish] = deque(maxlen=_MOST_KEPT)
        self._answers: deque[FromBroker] = deque()

    @classmethod
    @asynccontextmanager
    async def to(cls, address: MqttAddress, who: Credentials, *, clean: bool = True) -> "AsyncIterator[MqttProbe]":
        """Yield a connection that the broker accepted; end it with DISCONNECT.

        Raises:
            MqttFault: The connection failed, or the broker refused it.
        """
        probe = cls(*await _open(address))
        try:
            await probe.greet(address, who, clean=clean)
            yield probe
        finally:
            await probe.close()

    async def greet(self, address: MqttAddress, who: Credentials, *, clean: bool) -> None:
        """Send CONNECT and wait until the broker accepts.

        Raises:
            MqttFault: The broker does not answer, or refuses.
        """
        self._writer.write(packets.connect(Connect.of(who, _KEEPALIVE, clean=clean)))
        answer = await self._answer(CONNECT_SECONDS)
        if not isinstance(answer, Connack):
            raise MqttFault("lost", f"{address} does not answer CONNECT as a broker does")
        if answer.code:
            raise MqttFault("login", f"{address} refuses {who.client_id} as {who.username} (code {answer.code})")

    async def publish(self, topic: str, payload: bytes) -> None:
        """Send a message at QoS 0.

        Raises:
            MqttFault: The connection is lost.
        """
        await self._write(packets.publish(topic, payload))

    async def subscribe(self, topic_filter: str) -> bool:
        """Subscribe at QoS 1; return whether the broker granted it.

        Raises:
            MqttFault: The connection is lost.
        """
        await self._write(packets.subscribe([topic_filter]))
        answer = await self._answer(ANSWER_SECONDS)
        return isinstance(answer, Suback) and not any(code >= SUBSCRIBE_DENIED for code in answer.codes)

    async def settle(self) -> None:
        """Wait until the broker has read all packets that were sent.

        Raises:
            MqttFault: The connection is lost.
        """
        await self._write(packets.PINGREQ)
        while not isinstance(await self._answer(ANSWER_SECONDS), Pingresp):
            pass

    async def message(self, fits: Callable[[Publish], bool], seconds: float | None = None) -> Publish | None:
        """Remove and return the first message that fits, a kept one or a new one; None if none arrives in time.

        Raises:
            MqttFault: The connection is lost.
        """
        try:
            async with asyncio.timeout(ANSWER_SECONDS if seconds is None else seconds):
                while (found := next(filter(fits, self._messages), None)) is None:
                    await self._read()
        except TimeoutError:
            return None
        self._messages.remove(found)
        return found

    def seen(self, fits: Callable[[Publish], bool]) -> bool:
        """Whether a message that fits has arrived and was not removed."""
        return any(map(fits, self._messages))

    async def close(self) -> None:
        """Send DISCONNECT and wait until the broker has closed, because it then publishes the presence."""
        try:
            self._writer.write(packets.DISCONNECT)
            async with asyncio.timeout(1.0):
                while await self._reader.read(_CHUNK):
                    pass
        except (OSError, TimeoutError):
            pass
        finally:
            self._writer.transport.abort()

    async def _write(self, frame: bytes) -> None:
        try:
            self._writer.write(frame)
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._writer.drain()
        except (OSError, TimeoutError) as error:
            raise MqttFault("lost", "the connection to the broker broke") from error

    async def _answer(self, seconds: float) -> FromBroker:
        try:
            async with asyncio.timeout(seconds):
                while not self._answers:
                    await self._read()
        except TimeoutError as error:
            raise MqttFault("lost", "the broker does not answer") from error
        return self._answers.popleft()

    async def _read(self) -> None:
        try:
            data = await self._reader.read(_CHUNK)
        except OSError as error:
            raise MqttFault("lost", "the connection to the broker broke") from error
        if not data:
            raise MqttFault("lost", "the broker closed the connection")
        for packet in self._packets.feed(data):
            if isinstance(packet, Broken):
                raise MqttFault("lost", f"the broker violates MQTT: {packet.reason}")
            if not isinstance(packet, Publish):
                self._answers.append(packet)
                continue
            self._messages.append(packet)
            if packet.packet_id:
                self._writer.write(packets.pubacks([packet.packet_id]))


async def _open(address: MqttAddress) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        context = tls_context(address.authorities) if address.tls else None
        async with asyncio.timeout(CONNECT_SECONDS):
            return await asyncio.open_connection(address.host, address.port, ssl=context)
    except ssl.SSLCertVerificationError as error:
        raise MqttFault("tls", f"{address}: {error.verify_message}") from error
    except ssl.SSLError as error:
        raise MqttFault("tls", f"{address}: {error.reason or error}") from error
    except (OSError, TimeoutError) as error:
        raise MqttFault("reach", f"{address}: {str(error) or 'no answer in time'}") from error
