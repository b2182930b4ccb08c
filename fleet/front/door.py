"""The front's listener and the life of every connection through it."""

import asyncio
import logging
import secrets
import time
from collections import Counter
from collections.abc import Iterable

from fleet.errors import ConfigError
from fleet.front.admission import Admitted, Refused, admit
from fleet.front.gate import Gate
from fleet.front.limits import Limits
from fleet.front.passage import Passage
from fleet.front.presence import Outbox
from fleet.front.presence_link import KEEPALIVE, PresenceLink
from fleet.front.register import Register, Stay
from fleet.front.side import Side
from fleet.link.mqtt import tls_context
from fleet.link.mqtt_url import parse_mqtt_url
from fleet.tasks import isolate
from fleet.wire import mqtt_packet as mqtt
from fleet.wire.identity import Credentials, Keys

log = logging.getLogger(__name__)

_SWEEP_SECONDS = 1.0
# rumqttd looks for a Will up to a few ms after a connection's end, by client id: it finds that of a quick next one.
_SETTLE_SECONDS = 0.05
_SWEEPS_A_REPORT = 60
_QUEUE = 1024


class Front:
    """A thin MQTT proxy: devices connect to it, and it to the broker in their name.

    Presence is published with QoS 1 on a connection of the front's own, where an offline cannot overtake the online
    before it. Should the front die, the broker publishes the offline: it is the Will of every device's connection.

    Args:
        host: Address to listen on.
        port: Port to listen on, 0 for any; `port` holds the true one once `started` is set.
        upstream: The broker, mqtt://host:port or mqtts://host:port.
        keys: Prove devices.
        login: For the broker, when it wants one: client id of the front's own connection, and the user name and
            password of all connections.
        limits: What is bounded.

    Raises:
        ConfigError: The broker's URL is wrong.
    """

    def __init__(
        self,
        *,
        host: str,
        port: int,
        upstream: str,
        keys: Keys,
        login: Credentials | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self.started = asyncio.Event()
        self.counts: Counter[str] = Counter()
        """How often what happened: reasons of refusals and ends, and what was dropped."""
        self._keys = keys
        self._broker = parse_mqtt_url(upstream)
        self._login = login
        self._limits = limits or Limits()
        self._link = PresenceLink(self._broker, _greeting(login), Outbox(2 * self._limits.connections, self.counts))
        self._register = Register(self._link.announce)
        self._passages: set[Passage] = set()
        self._strangers = 0

    @property
    def connections(self) -> int:
        return len(self._passages)

    async def run(self) -> None:
        """Serve until cancelled.

        Raises:
            ConfigError: The address cannot be listened on.
        """
        async with asyncio.TaskGroup() as group:
            server = await self._listen(group)
            group.create_task(self._link.run(), name="front presence")
            group.create_task(self._sweep(), name="front sweep")
            log.info("front listens", extra={"port": self.port, "broker": str(self._broker)})
            self.started.set()
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                server.close()

    def expel(self, macs: Iterable[str]) -> None:
        """Close the connections of these devices; `keys` must refuse them already."""
        for mac in macs:
            stay = self._register.find(mac)
            if stay is not None:
                stay.passage.end("revoked")

    async def _listen(self, group: asyncio.TaskGroup) -> asyncio.Server:
        try:
            server = await asyncio.get_running_loop().create_server(
                lambda: self._accept(group), self.host, self.port, backlog=_QUEUE
            )
        except OSError as error:
            raise ConfigError(f"cannot listen on {self.host}:{self.port}: {error.strerror or error}") from error
        self.port = server.sockets[0].getsockname()[1]
        return server

    def _accept(self, group: asyncio.TaskGroup) -> Side:
        passage = Passage(self._limits)
        if self.connections >= self._limits.connections or self._strangers >= self._limits.strangers:
            self.counts["full"] += 1
            passage.cut()
            return passage.device
        self._passages.add(passage)
        self._strangers += 1
        group.create_task(isolate("front connection", self._serve(passage)), name="front connection")
        return passage.device

    async def _serve(self, passage: Passage) -> None:
        """Carry one connection from its first packet to its end; when cancelled, cut it, so that the Will speaks."""
        try:
            device = await self._admit(passage)
            if device is not None:
                await self._carry(passage, device)
            await passage.close()
        finally:
            passage.cut()
            self._passages.discard(passage)

    async def _admit(self, passage: Passage) -> Admitted | None:
        try:
            first = await passage.greet()
        finally:
            self._strangers -= 1
        if first is None:
            self.counts[passage.reason] += 1
            return None
        verdict = admit(first, self._keys)
        if isinstance(verdict, Admitted):
            return verdict
        self._refuse(passage, verdict)
        return None

    def _refuse(self, passage: Passage, verdict: Refused) -> None:
        self.counts[verdict.reason] += 1
        log.debug("connection refused", extra={"reason": verdict.reason, "ip": passage.device.address})
        passage.device.write(verdict.answer)

    async def _carry(self, passage: Passage, device: Admitted) -> None:
        gate = Gate(device, self.counts)
        passage.admit(gate)
        stay, old = self._register.enter(device.mac, passage, time.time_ns() // 1000)
        try:
            if old is not None:
                old.passage.end("taken over")
                await old.passage.closed.wait()
                await asyncio.sleep(_SETTLE_SECONDS)
            await self._connect(passage, gate, stay)
            if gate.state == "open":
                log.debug("device connected", extra={"device": device.mac})
                self._register.confirm(stay, passage.device.address)
            else:
                passage.device.write(mqtt.connack(mqtt.UNAVAILABLE))
            await passage.ended.wait()
            log.debug("device gone", extra={"device": device.mac, "reason": passage.reason})
            self.counts[passage.reason] += 1
        finally:
            self._register.leave(stay)

    async def _connect(self, passage: Passage, gate: Gate, stay: Stay) -> None:
        """Connect to the broker and wait until the gate is open or the passage has ended."""
        if passage.reason:
            return
        loop, tls = asyncio.get_running_loop(), tls_context() if self._broker.tls else None
        try:
            async with asyncio.timeout(self._limits.upstream):
                await loop.create_connection(lambda: passage.broker, self._broker.host, self._broker.port, ssl=tls)
                passage.broker.write(gate.introduce(stay.absence(), self._login))
                await passage.opened.wait()
        except OSError as error:  # TimeoutError is one
            log.warning("broker does not answer", extra={"broker": str(self._broker), "reason": str(error)})
            passage.end("broker unreachable")

    async def _sweep(self) -> None:
        """End silent and stuck connections, and write down what was counted."""
        loop, told = asyncio.get_running_loop(), Counter[str]()
        while True:
            for _ in range(_SWEEPS_A_REPORT):
                await asyncio.sleep(_SWEEP_SECONDS)
                for passage in self._passages:
                    passage.check(loop.time())
            if self.counts != told:
                told = self.counts.copy()
                log.info("front counts", extra={"connections": self.connections, "counts": dict(told)})


def _greeting(login: Credentials | None) -> mqtt.Connect:
    if login is None:
        return mqtt.Connect(f"fleet-front-{secrets.token_hex(4)}", keepalive=KEEPALIVE)
    return mqtt.Connect(login.client_id, login.username, login.password, KEEPALIVE)
