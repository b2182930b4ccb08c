"""An MQTT session over one connection.

Why there is no MQTT library here: docs/adr/0002-mqtt-client.md.
"""

import asyncio
import functools
import logging
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fleet.adapters.net.mqtt.connection import MqttConnection
from fleet.adapters.net.mqtt.inbox import Inbox, OnMessage
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.ground.errors import Overloaded, Unavailable
from fleet.wire.identity import Credentials
from fleet.wire.mqtt import packets
from fleet.wire.mqtt.packets import SUBSCRIBE_DENIED, Connack, Connect, Publish, Suback, Will

log = logging.getLogger(__name__)

CONNECT_SECONDS = 10.0
"""Longest time for the TCP connection and TLS; again for CONNACK; again for SUBACK."""
KEEPALIVE_SECONDS = 10.0
"""Usual keep-alive."""
LARGEST_BACKLOG = 1024 * 1024
"""Bytes that may wait to be sent; beyond that further messages are refused."""

_REFUSALS = {
    1: "unacceptable protocol version",
    2: "client id rejected",
    3: "broker not ready",
    4: "bad user name or password",
    5: "not authorised",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """The subscriptions of a session.

    `filters` are subscribed at QoS 1. `on_message` is called with topic and payload in order of arrival; at most
    `bound` calls run at a time, beyond that reading stops. A QoS 1 message is acknowledged when its call and those
    before it have ended, also with a failure. A call that fails with `Unavailable` or `Fenced` ends the session, so
    that the broker sends its message and all later ones again.
    """

    filters: Sequence[str]
    on_message: OnMessage
    bound: int = 1000


class MqttSession:
    """One connection: connects once and ends when it is lost; a new connection needs a new object.

    So no published message is ever sent a second time.

    Args:
        address: The broker.
        credentials: Client id, user name and password; without a user name the login is anonymous.
        persistent: The broker keeps subscriptions and unacknowledged messages for the next session of this client id.
        keepalive: In seconds, None for the usual one; see `MqttConnection`.
        will: Published by the broker when the connection is lost, not when `run` is cancelled.
        reading: The subscriptions; None for none.
        on_puback: Called with the packet id of each message at QoS 1 that the broker has acknowledged.
    """

    def __init__(  # noqa: PLR0913 - all of it by name
        self,
        address: MqttAddress,
        credentials: Credentials,
        *,
        persistent: bool = False,
        keepalive: int | None = None,
        will: Will | None = None,
        reading: Reading | None = None,
        on_puback: Callable[[int], None] = lambda packet_id: None,
    ) -> None:
        self._address = address
        self._reading = reading
        seconds = round(KEEPALIVE_SECONDS) if keepalive is None else keepalive
        self._make_connection = functools.partial(MqttConnection, seconds, on_puback=on_puback)
        self._greeting = packets.connect(Connect.of(credentials, seconds, clean=not persistent, will=will))
        self._connection: MqttConnection | None = None
        self._inbox: Inbox | None = None
        self._refused: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._greeted = self._ready = False
        self._subscribing: asyncio.Timeout | None = None
        self._draining = False
        self.resumed = False
        """Whether the broker still had a session of this client id."""

    @property
    def connected(self) -> bool:
        """Whether CONNACK and SUBACK have come and the connection is not known to be lost."""
        return self._ready and self._connection is not None and not self._connection.lost.done()

    async def run(
        self, on_ready: Callable[[], None] = lambda: None, on_greeted: Callable[[], None] = lambda: None
    ) -> None:
        """Connect, subscribe, then deliver messages until the connection is lost.

        Cancelling it cancels the handlers, leaves their messages unacknowledged and closes with a DISCONNECT.

        Args:
            on_ready: Called once, when all filters are subscribed. The broker may deliver stored messages before; a
                handler must not wait for this call, because SUBACK may come after all stored messages.
            on_greeted: Called once, when the broker has accepted the login: from then on messages may be published.

        Raises:
            Unavailable: The broker could not be reached, refused, or the connection was lost; with the reason.
        """
        if self._connection:
            raise RuntimeError("a session connects once")
        async with asyncio.TaskGroup() as group:
            self._connection = self._make_connection(functools.partial(self._deliver, group))
            if self._reading:
                reading = self._reading
                self._inbox = Inbox(reading.on_message, self._acknowledge, self._pause, self._refuse, reading.bound)
            try:
                reason = await self._converse(self._connection, on_ready, on_greeted)
            finally:
                self._greeted = self._ready = False
                if self._inbox:
                    self._inbox.close()
                await self._connection.close()
        raise Unavailable(f"{self._address}: {reason}")

    def publish(self, topic: str, payload: bytes, packet_id: int = 0) -> None:
        """Send a message once: at QoS 0, or at QoS 1 with a packet id that the caller chooses.

        Raises:
            Unavailable: Not connected; nothing was sent.
            Overloaded: More than `LARGEST_BACKLOG` bytes wait already; nothing was sent.
        """
        if self._connection is None or not self._greeted or self._connection.lost.done():
            raise Unavailable(f"{self._address}: not connected")
        if self._connection.unsent() > LARGEST_BACKLOG:
            raise Overloaded(f"{self._address}: the broker takes messages too slowly")
        self._connection.send(packets.publish(topic, payload, int(packet_id > 0), packet_id))

    async def drain(self, seconds: float) -> None:
        """Stop reading and wait up to `seconds` until received messages are handled and acknowledged."""
        self._draining = True
        self._pause(True)
        if self._inbox:
            try:
                async with asyncio.timeout(seconds):
                    await self._inbox.settled()
            except TimeoutError:
                log.warning("messages left unhandled", extra={"broker": str(self._address)})

    def _deliver(self, group: asyncio.TaskGroup, message: Publish) -> None:
        if self._inbox:
            self._inbox.put(group, message)
            if self._subscribing:
                _extend_deadline(self._subscribing)

    def _acknowledge(self, packet_ids: Sequence[int]) -> None:
        if self._connection:
            self._connection.send(packets.pubacks(packet_ids))
            if self._subscribing:
                _extend_deadline(self._subscribing)

    def _refuse(self, reason: str) -> None:
        if not self._refused.done():
            self._refused.set_result(f"a message could not be handled: {reason}")

    def _pause(self, full: bool) -> None:
        if self._connection:
            self._connection.pause(full or self._draining)

    async def _converse(
        self, connection: MqttConnection, on_ready: Callable[[], None], on_greeted: Callable[[], None]
    ) -> str:
        """Return why the connection ended."""
        try:
            await self._open(connection)
            await self._greet(connection)
            self._greeted = True
            on_greeted()
            await self._subscribe(connection)
        except (OSError, TimeoutError) as error:
            return f"cannot connect: {error or 'no answer in time'}"
        except Unavailable as error:
            return str(error)
        self._ready = True
        on_ready()
        ended, _ = await asyncio.wait((connection.lost, self._refused), return_when=asyncio.FIRST_COMPLETED)
        return ended.pop().result()

    async def _open(self, connection: MqttConnection) -> None:
        context = tls_context(self._address.authorities) if self._address.tls else None
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT_SECONDS):
            await loop.create_connection(lambda: connection, self._address.host, self._address.port, ssl=context)

    async def _greet(self, connection: MqttConnection) -> None:
        async with asyncio.timeout(CONNECT_SECONDS):
            answer = await connection.ask(self._greeting)
        if not isinstance(answer, Connack):
            raise Unavailable("the broker answered CONNECT with something else")
        if answer.code:
            raise Unavailable(f"refused: {_REFUSALS.get(answer.code, f'code {answer.code}')}")
        self.resumed = answer.resumed

    async def _subscribe(self, connection: MqttConnection) -> None:
        if self._reading is None or not self._reading.filters:
            return
        try:
            async with asyncio.timeout(CONNECT_SECONDS) as self._subscribing:
                answer = await connection.ask(packets.subscribe(self._reading.filters))
        finally:
            self._subscribing = None
        codes = answer.codes if isinstance(answer, Suback) else b""
        for one, code in zip(self._reading.filters, codes, strict=False):
            if code >= SUBSCRIBE_DENIED:
                raise Unavailable(f"the broker refused to subscribe to {one}")
        if len(codes) != len(self._reading.filters):
            raise Unavailable("the broker's answer to SUBSCRIBE does not fit")
        if not all(codes):
            log.warning("subscribed at QoS 0 only", extra={"broker": str(self._address)})


def _extend_deadline(subscribing: asyncio.Timeout) -> None:
    """Give the broker more time for SUBACK: it may send stored messages before."""
    subscribing.reschedule(asyncio.get_running_loop().time() + CONNECT_SECONDS)


@functools.cache
def tls_context(authorities: Path | None = None) -> ssl.SSLContext:
    """Return the TLS context for brokers: the system's authorities, host names checked. Cached: loading is slow.

    Args:
        authorities: PEM file with further authorities.

    Raises:
        OSError: It cannot be read.
    """
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if authorities is not None:
        context.load_verify_locations(authorities)
    return context
