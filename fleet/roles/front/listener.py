"""The front's listener and the life of every connection through it."""

import asyncio
import logging
import secrets
import time
from collections import Counter
from collections.abc import Iterable
from functools import partial

from fleet.adapters.net.mqtt.session import tls_context
from fleet.adapters.net.mqtt.url import MqttAddress, parse_mqtt_url
from fleet.core.rates import Buckets, Rate
from fleet.ground.tasks import isolate
from fleet.roles.front.admission import Admitted, ConnectCheck
from fleet.roles.front.gate import FrontGate
from fleet.roles.front.leg import Leg
from fleet.roles.front.limits import FrontLimits
from fleet.roles.front.listeners import Listeners, Secure
from fleet.roles.front.presence import PresenceOutbox
from fleet.roles.front.presence_link import PresenceLink
from fleet.roles.front.presence_registry import ConnectedDevice, PresenceRegistry
from fleet.roles.front.proxied_connection import ProxiedConnection
from fleet.wire.identity import CredentialKeys, Credentials, parse_username
from fleet.wire.mqtt import packets

log = logging.getLogger(__name__)

_SWEEP_SECONDS = 1.0
# rumqttd looks for a Will up to a few ms after a connection's end, by client id: it finds that of a quick next one.
_SETTLE_SECONDS = 0.05
_SWEEPS_A_REPORT = 60
_MESSAGE = 4096


class Front:
    """A thin MQTT proxy: devices connect to it, and it to the broker in their name.

    A device's online is published with QoS 1 on its own connection to the broker, before anything that it says; its
    offline on a connection of the front's own, for the device's may be lost. Should the front die, the broker publishes
    the offline: it is the Will of every device's connection.

    Args:
        host: Address to listen on.
        port: Port to listen on, 0 for any; `port` holds the true one once `started` is set.
        upstream: The broker, mqtt://host:port or mqtts://host:port.
        keys: Prove devices.
        login: For the broker, when it wants one: client id of the front's own connection, and the user name and
            password of all connections.
        limits: What is bounded.
        secure: A listener with TLS besides; `tls_port` holds its true port.

    Raises:
        ConfigError: The broker's URL is wrong.
    """

    def __init__(  # noqa: PLR0913 - all of it by name
        self,
        *,
        host: str,
        port: int,
        upstream: str | MqttAddress,
        keys: CredentialKeys,
        login: Credentials | None = None,
        limits: FrontLimits | None = None,
        secure: Secure | None = None,
    ) -> None:
        self.started = asyncio.Event()
        self.counts: Counter[str] = Counter()
        """How often what happened: reasons of refusals and ends, and what was dropped."""
        self.admission = ConnectCheck(keys, (limits or FrontLimits()).devices)
        self._broker = parse_mqtt_url(upstream) if isinstance(upstream, str) else upstream
        self._login = login
        self._limits = limits or FrontLimits()
        self._listeners = Listeners((host, port), secure, self._limits, self.counts)
        own = login or Credentials(f"fleet-front-{secrets.token_hex(4)}", "", "")
        self._link = PresenceLink(self._broker, own, PresenceOutbox(2 * self._limits.connections, self.counts))
        self._registry = PresenceRegistry(self._link.announce)
        self._connections: set[ProxiedConnection] = set()
        self._strangers: dict[ProxiedConnection, None] = {}
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
    def strangers(self) -> int:
        """Connections that have not proved who they are."""
        return len(self._strangers)

    async def run(self) -> None:
        """Serve until cancelled.

        Raises:
            ConfigError: The address cannot be listened on.
        """
        async with asyncio.TaskGroup() as group, self._listeners.open(group, lambda: self._accept(group)):
            group.create_task(self._link.run(), name="front presence")
            group.create_task(self._sweep(), name="front sweep")
            log.info("front listens", extra={"port": self.port, "tls": self.tls_port, "broker": str(self._broker)})
            self.started.set()
            await asyncio.get_running_loop().create_future()

    def expel(self, macs: Iterable[str] | None) -> None:
        """Close the connections of these devices, None: of all, whose credentials `keys` no longer admits."""
        here = self._registry.connected() if macs is None else filter(None, map(self._registry.find, macs))
        for connected in here:
            if not self.admission.keys.admit(connected.mac, parse_username(connected.username)):
                connected.connection.end("revoked" if connected.mac in self.admission.keys.revoked else "outdated")

    def _accept(self, group: asyncio.TaskGroup) -> Leg:
        connection = ProxiedConnection(self._limits)
        if self.connections >= self._limits.connections:
            self.counts["full"] += 1
            connection.cut()
            return connection.device
        if len(self._strangers) >= self._limits.strangers:
            self._crowd_out()
        self._connections.add(connection)
        self._strangers[connection] = None
        group.create_task(isolate("front connection", self._serve(connection)), name="front connection")
        return connection.device

    def _crowd_out(self) -> None:
        """End the stranger that has been silent for longest: a device speaks at once, so it is seldom one."""
        oldest = next(iter(self._strangers))
        del self._strangers[oldest]
        oldest.end("crowded out")

    async def _serve(self, connection: ProxiedConnection) -> None:
        """Carry one connection from its first packet to its end; when cancelled, cut it, so that the Will speaks."""
        try:
            device = await self._admit(connection)
            if device is not None:
                await self._carry(connection, device)
            await connection.close()
        finally:
            connection.cut()
            self._connections.discard(connection)

    async def _admit(self, connection: ProxiedConnection) -> Admitted | None:
        try:
            first = await connection.first_packet()
        finally:
            self._strangers.pop(connection, None)
        if first is None:
            self.counts[connection.reason] += 1
            return None
        verdict = self.admission.decide(first)
        if isinstance(verdict, Admitted):
            return verdict
        self.counts[verdict.reason] += 1
        log.debug("connection refused", extra={"reason": verdict.reason, "ip": connection.device.address})
        connection.device.write(verdict.answer)
        return None

    async def _carry(self, connection: ProxiedConnection, device: Admitted) -> None:
        gate = FrontGate(device, self.counts, partial(self._affords, device.mac))
        connection.admit(gate)
        connected, old = self._registry.enter(device.mac, connection, time.time_ns() // 1000, device.username)
        try:
            if old is not None:
                old.connection.end("taken over")
                await old.connection.closed.wait()
                await asyncio.sleep(_SETTLE_SECONDS)
            await self._open_upstream(connection, gate, connected)
            if gate.announced:
                self._registry.confirm(connected)
            if gate.state == "open":
                log.debug("device connected", extra={"device": device.mac})
            else:
                connection.device.write(packets.connack(packets.UNAVAILABLE))
            await connection.ended.wait()
            log.debug("device gone", extra={"device": device.mac, "reason": connection.reason})
            self.counts[connection.reason] += 1
        finally:
            self._registry.leave(connected)

    def _affords(self, mac: str, size: int) -> bool:
        # By MAC, not by connection: to come again must not help.
        return not self._messages.take(mac, asyncio.get_running_loop().time(), 1 + size // _MESSAGE)

    async def _open_upstream(self, connection: ProxiedConnection, gate: FrontGate, connected: ConnectedDevice) -> None:
        """Connect to the broker and wait until the gate is open or the connection has ended."""
        if connection.reason:
            return
        loop, tls = asyncio.get_running_loop(), tls_context(self._broker.authorities) if self._broker.tls else None
        try:
            async with asyncio.timeout(self._limits.upstream):
                await loop.create_connection(lambda: connection.broker, self._broker.host, self._broker.port, ssl=tls)
                presence = connected.announcement(connection.device.address)
                connection.broker.write(gate.connect_packet(presence, self._login))
                await connection.opened.wait()
        except OSError as error:  # TimeoutError is one
            log.warning("broker does not answer", extra={"broker": str(self._broker), "reason": str(error)})
            connection.end("broker unreachable")

    async def _sweep(self) -> None:
        """End silent and stuck connections, and write down what was counted."""
        loop, logged = asyncio.get_running_loop(), Counter[str]()
        while True:
            for _ in range(_SWEEPS_A_REPORT):
                await asyncio.sleep(_SWEEP_SECONDS)
                for connection in self._connections:
                    connection.check(loop.time())
            if self.counts != logged:
                logged = self.counts.copy()
                log.info("front counts", extra={"connections": self.connections, "counts": dict(logged)})
