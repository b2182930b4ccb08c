"""The front: accept the connections of devices, and proxy each to the broker."""

import asyncio
import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from functools import partial

from fleet.adapters.net.mqtt.session import tls_context
from fleet.adapters.net.mqtt.url import MqttAddress, parse_mqtt_url
from fleet.core.rates import Buckets, Rate
from fleet.ground.tasks import isolate
from fleet.roles.front.connect_check import Admitted, ConnectCheck
from fleet.roles.front.gate import FrontGate
from fleet.roles.front.leg import Leg
from fleet.roles.front.limits import FrontLimits
from fleet.roles.front.listeners import Listeners, TlsBinding
from fleet.roles.front.presence import PresenceOutbox
from fleet.roles.front.presence_link import PresenceLink
from fleet.roles.front.presence_registry import ConnectedDevice, PresenceRegistry
from fleet.roles.front.proxied_connection import ProxiedConnection
from fleet.roles.front.reader_wait import ReaderWait
from fleet.wire.identity import CredentialKeys, Credentials, parse_username
from fleet.wire.mqtt import packets
from fleet.wire.mqtt.framing import Packet

log = logging.getLogger(__name__)

_SWEEP_SECONDS = 1.0
# rumqttd looks up a Will by client id up to a few ms after a connection's end: it would find that of a new connection.
_SETTLE_SECONDS = 0.05
_SWEEPS_A_REPORT = 60
_MESSAGE = 4096


class Front:
    """A thin MQTT proxy: devices connect to it, and for each it connects to the broker with the device's client id.

    A device's presence `online` is published with QoS 1 on its own connection to the broker, before its messages. Its
    `offline` is published on the front's own connection, because the device's may be lost. It is also the Will of the
    device's connection, so that the broker publishes it if the front dies.

    Args:
        host: Address to listen on.
        port: Port to listen on, 0 for any; the property `port` has the actual one when `started` is set.
        upstream: The broker, mqtt://host:port or mqtts://host:port.
        keys: Verify the logins of devices.
        login: If the broker requires one: the client id of the front's own connection, and the user name and password
            of all connections.
        limits: Of the front.
        secure: A second listener with TLS; `tls_port` has its actual port.
        is_read: Returns whether somebody reads what devices send; they wait for it. It matters with a broker that keeps
            nothing for readers that are away.

    Raises:
        ConfigError: The broker's URL is wrong.
    """

    def __init__(  # noqa: PLR0913 - keyword arguments only
        self,
        *,
        host: str,
        port: int,
        upstream: str | MqttAddress,
        keys: CredentialKeys,
        login: Credentials | None = None,
        limits: FrontLimits | None = None,
        secure: TlsBinding | None = None,
        is_read: Callable[[], bool] = lambda: True,
    ) -> None:
        self.started = asyncio.Event()
        self.counts: Counter[str] = Counter()
        """Counts by reason: refusals, ends of connections, dropped messages."""
        self.admission = ConnectCheck(keys, (limits or FrontLimits()).devices)
        self._upstream = parse_mqtt_url(upstream) if isinstance(upstream, str) else upstream, login, ReaderWait(is_read)
        self._limits = limits or FrontLimits()
        self._listeners = Listeners((host, port), secure, self._limits, self.counts)
        own = login or Credentials(f"fleet-front-{secrets.token_hex(4)}", "", "")
        self._link = PresenceLink(self._upstream[0], own, PresenceOutbox(2 * self._limits.connections, self.counts))
        self._registry = PresenceRegistry(self._link.announce)
        self._connections: dict[ProxiedConnection, ConnectedDevice | None] = {}
        """The device is None before its CONNECT is accepted."""
        self._unauthenticated: dict[ProxiedConnection, None] = {}
        self._group = asyncio.TaskGroup()
        self._messages = Buckets(Rate(self._limits.messages, 10 * self._limits.messages))

    @property
    def port(self) -> int:
        return self._listeners.port

    @property
    def tls_port(self) -> int | None:
        """None without a listener with TLS."""
        return self._listeners.tls_port

    @property
    def connections(self) -> int:
        return len(self._connections)

    @property
    def unauthenticated(self) -> int:
        """Number of connections without a valid CONNECT."""
        return len(self._unauthenticated)

    async def run(self) -> None:
        """Serve until cancelled.

        Raises:
            ConfigError: It cannot listen on the address.
        """
        async with self._group, self._listeners.open(self._group, self._accept):
            try:
                self._group.create_task(self._link.run(), name="front presence")
                self._group.create_task(self._sweep(), name="front sweep")
                log.info(
                    "front listens", extra={"port": self.port, "tls": self.tls_port, "broker": str(self._upstream[0])}
                )
                self.started.set()
                await asyncio.get_running_loop().create_future()
            finally:
                for connection in list(self._connections):
                    self._discard(connection)

    def expel(self, macs: Iterable[str] | None) -> None:
        """Close the connections whose credentials `keys` no longer admits, of these devices or (None) of all."""
        here = self._registry.connected() if macs is None else filter(None, map(self._registry.find, macs))
        for connected in here:
            if not self.admission.keys.admit(connected.mac, parse_username(connected.username)):
                connected.connection.end("revoked" if connected.mac in self.admission.keys.revoked else "outdated")

    def _accept(self) -> Leg:
        connection = ProxiedConnection(self._limits, self._attend)
        if self.connections >= self._limits.connections:
            self.counts["full"] += 1
            connection.abort()
            return connection.device
        if len(self._unauthenticated) >= self._limits.unauthenticated:
            # The oldest connection without a CONNECT is seldom a device, because devices send it at once.
            oldest = next(iter(self._unauthenticated))
            del self._unauthenticated[oldest]
            oldest.end("crowded out")
        self._connections[connection] = None
        self._unauthenticated[connection] = None
        return connection.device

    def _attend(self, connection: ProxiedConnection, first: Packet | None) -> None:
        self._unauthenticated.pop(connection, None)
        work = partial(self._serve, connection, first) if first else partial(self._leave, connection)
        self._group.create_task(_isolated(work), name="front connection")

    async def _serve(self, connection: ProxiedConnection, first: Packet) -> None:
        """Serve a connection from its CONNECT until its device has the CONNACK."""
        try:
            verdict = self.admission.decide(first)
            if isinstance(verdict, Admitted):
                await self._proxy(connection, verdict)
            else:
                log.debug("connection refused", extra={"reason": verdict.reason, "ip": connection.device.address})
                connection.device.write(verdict.answer)
                connection.end(verdict.reason)
            connection.attended = False
        finally:
            if connection.attended:
                self._discard(connection)
        if connection.reason:
            await self._leave(connection)

    async def _leave(self, connection: ProxiedConnection) -> None:
        """Close an ended connection. If cancelled, abort it, so that the broker publishes the Will."""
        try:
            self.counts[connection.reason] += 1
            device = self._connections.get(connection)
            if device is not None:
                log.debug("device gone", extra={"device": device.mac, "reason": connection.reason})
                self._registry.remove(device)
            await connection.close()
        finally:
            self._discard(connection)

    def _discard(self, connection: ProxiedConnection) -> None:
        device = self._connections.pop(connection, None)
        if device is not None:
            self._registry.remove(device)
        connection.abort()

    async def _proxy(self, connection: ProxiedConnection, device: Admitted) -> None:
        gate = FrontGate(device, self.counts, partial(_allows, self._messages, device.mac))
        connection.admit(gate)
        connected, old = self._registry.add(device.mac, connection, time.time_ns() // 1000, device.username)
        self._connections[connection] = connected
        if old is not None:
            old.connection.end("taken over")
            await old.connection.wait_closed()
            if not connection.reason:
                await asyncio.sleep(_SETTLE_SECONDS)
        await self._open_upstream(connection, gate, connected)
        if gate.announced:
            self._registry.mark_announced(connected)
        if connection.opened:
            log.debug("device connected", extra={"device": device.mac})
        else:
            connection.device.write(packets.connack(packets.UNAVAILABLE))

    async def _open_upstream(self, connection: ProxiedConnection, gate: FrontGate, connected: ConnectedDevice) -> None:
        """Connect to the broker and wait until the gate is open or the connection has ended."""
        if connection.reason:
            return
        loop, (broker, login, readers) = asyncio.get_running_loop(), self._upstream
        tls = tls_context(broker.authorities) if broker.tls else None
        try:
            async with asyncio.timeout(self._limits.upstream):
                if not await readers.wait(connection):
                    return
                await loop.create_connection(lambda: connection.broker, broker.host, broker.port, ssl=tls)
                presence = connected.announcement(connection.device.address)
                connection.broker.write(gate.connect_packet(presence, login))
                await connection.wait_for(lambda: connection.opened)
        except OSError as error:  # TimeoutError is one
            log.warning("broker does not answer", extra={"broker": str(broker), "reason": str(error)})
            connection.end("broker unreachable")

    async def _sweep(self) -> None:
        """End silent and blocked connections, and log the counts."""
        loop, logged = asyncio.get_running_loop(), Counter[str]()
        while True:
            for _ in range(_SWEEPS_A_REPORT):
                await asyncio.sleep(_SWEEP_SECONDS)
                for connection in self._connections:
                    connection.check(loop.time())
            if self.counts != logged:
                logged = self.counts.copy()
                log.info("front counts", extra={"connections": self.connections, "counts": dict(logged)})


async def _isolated(work: Callable[[], Coroutine[None, None, None]]) -> None:
    # Call it inside the task: a coroutine is never awaited if the task is cancelled before it begins.
    await isolate("front connection", work())


def _allows(messages: Buckets, mac: str, size: int) -> bool:
    # Limit by MAC, not by connection: a new connection must not reset the limit.
    return not messages.take(mac, asyncio.get_running_loop().time(), 1 + size // _MESSAGE)
