"""Power, bootstrap and MQTT connection of a scripted device."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Self

from fleet.ground.errors import Unavailable
from fleet.ground.tasks import single_exception
from fleet.workbench.sim.bootstrap.ota import Bootstrap, MqttAccess
from fleet.workbench.sim.bootstrap.request import reply_topic
from fleet.workbench.sim.firmware import notifications
from fleet.workbench.sim.messages import message as firmware
from fleet.workbench.sim.messages.message import JsonObject, member
from fleet.workbench.sim.profiles.identity import Identity
from fleet.workbench.sim.profiles.profile import Profile
from fleet.workbench.sim.records import clock
from fleet.workbench.sim.records.audit import Finding
from fleet.workbench.sim.records.expectation import Failed
from fleet.workbench.sim.records.journal import Journal
from fleet.workbench.sim.records.loop_lag import LoopLag
from fleet.workbench.sim.scripted.mqtt_connection import RawMqttConnection
from fleet.workbench.sim.scripted.received import ReceivedMessage, ReceivedMessages
from fleet.workbench.sim.scripted.tools import ScriptedTools


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a device boots from, and which authorities it trusts on port 8883."""

    ota_url: str
    tls: ssl.SSLContext | None = None


@dataclass(slots=True)
class _Tasks:
    """What runs beside a test, and ends with the device."""

    group: asyncio.TaskGroup | None = None
    tasks: list[asyncio.Task[None]] = field(default_factory=list)


class ConnectedDevice:
    """A device that is on, and may be connected; `running` is its power.

    Args:
        profile: Which build it is.
        mac: Canonical.
        origin: Where it boots from.
    """

    def __init__(self, profile: Profile, mac: str, origin: Origin) -> None:
        self.profile = profile
        self.mac = mac
        self.messages = ReceivedMessages()
        self.clock = clock.now
        self.tools = ScriptedTools(profile, self.clock)
        self.loop_lag = LoopLag(self.clock)
        """How late this process runs; the server is not to blame for that."""
        self.findings: list[Finding] = []
        """Breaches that every device reports, whatever the test is about."""
        self.session = ""
        """Of the newest hello."""
        self.access: MqttAccess | None = None
        """What bootstrap said."""
        self._origin = origin
        self._tasks = _Tasks()
        self._mqtt: RawMqttConnection | None = None

    @property
    def mqtt(self) -> RawMqttConnection:
        assert self._mqtt is not None, "the device is not connected"  # noqa: S101 - the test's own fault
        return self._mqtt

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Give the device its tasks; leaving the block ends everything without a goodbye."""
        try:
            async with asyncio.TaskGroup() as self._tasks.group:
                self.spawn(self.loop_lag.run(), "scripted-loop-lag")
                try:
                    yield self
                finally:
                    self._end()
        except BaseExceptionGroup as group:
            raise single_exception(group) from None

    def spawn(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        """Run something beside the test; it ends with the device."""
        assert self._tasks.group is not None, "the device is not running"  # noqa: S101 - the test's own fault
        task = self._tasks.group.create_task(work, name=name)
        self._tasks.tasks.append(task)
        return task

    async def boot(self) -> MqttAccess:
        """Ask bootstrap once, and once more if it is busy (503), as firmware does later.

        Raises:
            Failed: It gave nothing usable.
        """
        profile = replace(self.profile, timing=replace(self.profile.timing, ota_tries=1))
        bootstrap = Bootstrap(self._origin.ota_url, Identity.of(self.mac), profile, Journal(self.clock))
        try:
            self.access = await _fetch(bootstrap)
        except Unavailable as error:
            raise Failed(str(error)) from error
        return self.access

    async def connect(self, *, keepalive: int | None = None, ping: bool = True, subscribe: bool | None = None) -> int:
        """Connect to MQTT, in place of an earlier connection; return the CONNACK's code.

        Args:
            keepalive: Seconds, sent to the broker; the value of bootstrap without it.
            ping: Whether to ping at half of it, as firmware does.
            subscribe: Whether to subscribe to the device's topic, if it is known; as the profile does without it.
        """
        if self.access is None:
            await self.boot()
        assert self.access is not None  # noqa: S101 - for the type checker
        mqtt = self._mqtt = RawMqttConnection(self.access, self._receive, self._origin.tls)
        code = await mqtt.connect(keepalive)
        self.spawn(mqtt.run(), "scripted-mqtt")
        if code == 0 and ping:
            self.spawn(mqtt.keep_alive((keepalive or self.access.keepalive) / 2), "scripted-ping")
        topic = reply_topic(self.access, self.mac)
        if code == 0 and topic and (self.profile.name == "P8" if subscribe is None else subscribe):
            await mqtt.subscribe(topic)
        return code

    def send(self, message: JsonObject | str | bytes, topic: str = "") -> None:
        """Publish a message as it is; an object is written as JSON."""
        text = json.dumps(message, ensure_ascii=False) if isinstance(message, dict) else message
        self.mqtt.publish(text.encode() if isinstance(text, str) else text, topic)

    def disconnect(self) -> None:
        """End the MQTT connection in order."""
        self.mqtt.close()

    def _react(self, message: ReceivedMessage) -> None:
        """Do what firmware does by itself on a message."""
        if message.kind == "mcp":
            self.spawn(self._answer(member(message.body, "payload")), "scripted-tool")

    def _receive(self, topic: str, payload: bytes) -> None:
        message = self.messages.add(topic, payload)
        if not message.body:
            self.findings.append(("json-invalid", str(message)))
            return
        self.findings.extend(firmware.check(message.body, len(payload), ""))
        if message.kind == "notify":
            self.findings.extend(notifications.check(message.body, known=self.profile.notify))
        self._react(message)

    async def _answer(self, request: JsonObject) -> None:
        reply = await self.tools.receive(request)
        if reply is not None:
            envelope = f'{{"session_id":"{self.session}","type":"mcp","payload":'.encode()
            self.send(envelope + (reply.encode() if isinstance(reply, str) else reply) + b"}")

    def _end(self) -> None:
        if self._mqtt:
            self._mqtt.drop()
        for task in self._tasks.tasks:
            task.cancel()


async def _fetch(bootstrap: Bootstrap) -> MqttAccess:
    try:
        return await bootstrap.fetch()
    except Unavailable as error:
        if "status 503" not in str(error):
            raise
    return await bootstrap.fetch()
