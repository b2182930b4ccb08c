"""The device's MQTT connection: clean sessions and QoS 0; when it is kept up depends on the build (contract 2)."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiomqtt
from paho.mqtt import client as paho

from fleet.workbench.sim.bootstrap.ota import MqttAccess
from fleet.workbench.sim.connection.reconnect import Reconnection
from fleet.workbench.sim.network import malformed
from fleet.workbench.sim.network.tcp_relay import TcpRelay
from fleet.workbench.sim.runtime.context import DeviceContext
from fleet.workbench.sim.runtime.main_loop import Flag, MainLoop
from fleet.workbench.sim.runtime.state import StateMachine

TLS_PORT = 8883
_MOST_WAITING = 256
"""Received messages that wait to be read."""
_PY_XIAOZHI_KEEPALIVE = 60
"""Seconds."""
_AFTER_THAW = 30.0
"""Seconds after a freeze in which its breaches do not count either: delayed messages arrive all at once."""
_EXCUSED_WHILE_FROZEN = (
    "hello-missing",
    "hello-late",
    "hello-slow",
    "abort-unanswered",
    "audio-after-abort",
    "stop-late",
    "stuck-speaking",
    "stuck-listening",
    "audio-outside-speaking",
    "audio-before-clear",
    "session-foreign",
    "underrun",
    "pause",
    "speech-without-channel",
)

OnMessage = Callable[[bytes, int], None]
"""Takes a payload and the length of its topic in bytes."""


class MqttClient:
    """Connects as the simulated firmware build does (always, or only for conversations); passes messages to on_message.

    Args:
        access: Endpoint, login and topics from the bootstrap answer.
        context: The device's profile, faults, journal and signal.
        machine: Says whether the device is idle.
        main_loop: The application's loop; its own attempt to connect blocks it.
        on_message: Called with every message, whatever its topic.
        tls: Trust for port 8883; the public authorities without it.
    """

    def __init__(
        self,
        access: MqttAccess,
        context: DeviceContext,
        machine: StateMachine,
        main_loop: MainLoop,
        on_message: OnMessage,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._access = access
        self._context = context
        self._main_loop = main_loop
        self._on_message = on_message
        self._tls = tls
        self._client: aiomqtt.Client | None = None
        self._reading: asyncio.Task[None] | None = None
        self._relay: TcpRelay | None = None
        self.on_connected: Callable[[], None] = _ignore
        """Called after each connection was made."""
        self._reconnection = Reconnection(context.profile, machine, main_loop, self.ready)

    @property
    def up(self) -> bool:
        return self._client is not None

    @property
    def has_topic(self) -> bool:
        """Whether there is a topic to publish on; without one, firmware sends nothing and does not notice."""
        return bool(self._access.publish_topic)

    async def run(self) -> None:
        """Connect, and connect again, as this build does, for ever."""
        async with self._through_relay():
            await self._reconnection.first()
            while True:
                await self._reconnection.pause(lost=await self._connect_once())

    async def ready(self, seconds: float) -> bool:
        """Wait until the connection is up; ends a pause between attempts."""
        self._reconnection.hurry()
        return await self._context.signal.within(seconds, lambda: self.up)

    async def publish(self, text: str) -> bool:
        """Publish on the device's topic; return False when that cannot be."""
        context = self._context
        if context.network.happens(context.faults.broken_json) and await self._send(
            malformed.junk(context.network.chance)
        ):
            context.journal.count("junk")
        return await self._send(text.encode("utf-8", "surrogateescape"))

    def conversation_over(self) -> None:
        """Disconnect, if this build is connected only for conversations; else do nothing."""
        if self._context.profile.link == "session" and self._reading:
            self._reading.cancel()

    def cut(self) -> None:
        """Close the connection without a DISCONNECT, as a crash does."""
        if self._client:
            _paho(self._client)._sock_close()  # noqa: SLF001 - no library breaks off on purpose

    async def _send(self, payload: bytes) -> bool:
        sent = self._client is not None and self.has_topic
        if self._client is not None and sent:
            try:
                await self._client.publish(self._access.publish_topic, payload, qos=0)
            except (aiomqtt.MqttError, ValueError):
                sent = False
            _raise_swallowed_cancellation()
        self._context.journal.count("mqtt_sent" if sent else "mqtt_unsent")
        return sent

    async def _connect_once(self) -> bool:
        """Be connected until that ends; return whether it ever was."""
        journal, connected = self._context.journal, False
        try:
            async with self._new_client() as client, _closing(client):
                _raise_swallowed_cancellation()
                connected = True
                if not self._context.profile.is_py_xiaozhi:
                    _ping_at_half(client)
                await self._subscribe(client)
                self._client = client
                self._context.signal.notify()
                journal.note("mqtt up", client_id=self._access.client_id)
                self.on_connected()
                async with asyncio.TaskGroup() as tasks:
                    self._reading = tasks.create_task(self._read(client), name="sim-mqtt-read")
        except (aiomqtt.MqttError, OSError) as error:
            journal.note("mqtt down", reason=str(error))
        finally:
            self._client = self._reading = None
            self._context.signal.notify()
        return connected

    async def _read(self, client: aiomqtt.Client) -> None:
        try:
            async for message in client.messages:
                self._context.journal.count("mqtt_received")
                self._on_message(message.payload, len(message.topic.value))
        except aiomqtt.MqttError as error:
            self._context.journal.note("mqtt down", reason=str(error))
            if self._context.profile.link == "session":
                self._main_loop.set(Flag.ERROR)

    async def _subscribe(self, client: aiomqtt.Client) -> None:
        topic = self._access.subscribe_topic
        if self._context.profile.is_py_xiaozhi and topic and topic != "null":
            granted = await client.subscribe(topic, qos=1)
            self._context.journal.note("subscribed", topic=topic, granted=[_code(one) for one in granted])

    @asynccontextmanager
    async def _through_relay(self) -> AsyncIterator[None]:
        """Lead the connections of this block through a relay, if the network is to delay or freeze them."""
        network = self._context.network
        if network.latency is None and not network.faults.half_open:
            yield
            return
        relay = TcpRelay(*_split(self._access.endpoint), self._context.journal.clock, network.latency)
        async with relay.running() as self._relay, asyncio.TaskGroup() as tasks:
            freezing = tasks.create_task(self._freeze(relay), name="sim-half-open")
            try:
                yield
            finally:
                freezing.cancel()

    async def _freeze(self, relay: TcpRelay) -> None:
        faults, journal = self._context.faults, self._context.journal
        if not faults.half_open or journal.find("mqtt frozen"):
            return
        await asyncio.sleep(faults.half_open_at)
        journal.note("mqtt frozen", seconds=faults.half_open)
        journal.excuse(_EXCUSED_WHILE_FROZEN, faults.half_open + _AFTER_THAW)
        relay.freeze()
        await asyncio.sleep(faults.half_open)
        relay.thaw()
        journal.note("mqtt thawed")

    def _new_client(self) -> aiomqtt.Client:
        host, port = _split(self._access.endpoint)
        client = aiomqtt.Client(
            host,
            port,
            identifier=self._access.client_id,
            username=self._access.username or None,
            password=self._access.password or None,
            clean_session=True,
            keepalive=_PY_XIAOZHI_KEEPALIVE if self._context.profile.is_py_xiaozhi else self._access.keepalive,
            timeout=self._context.profile.timing.mqtt_connect,
            max_queued_incoming_messages=_MOST_WAITING,
            tls_context=(self._tls or ssl.create_default_context()) if port == TLS_PORT else None,
        )
        if self._relay:
            _connect_via_relay(client, self._relay.port, self._context.profile.timing.mqtt_connect)
        return client


def _ignore() -> None:
    """Do nothing."""


def _split(endpoint: str) -> tuple[str, int]:
    host, _, port = endpoint.partition(":")
    return host, int(port) if port else TLS_PORT


def _code(granted: object) -> int:
    return granted if isinstance(granted, int) else int(getattr(granted, "value", 128))


def _raise_swallowed_cancellation() -> None:
    """Raise a cancellation that asyncio.wait_for, used by aiomqtt, swallowed because its result came with it."""
    task = asyncio.current_task()
    if task and task.cancelling():
        raise asyncio.CancelledError


def _paho(client: aiomqtt.Client) -> paho.Client:
    return client._client  # noqa: SLF001 - neither library lets one do what firmware does


@asynccontextmanager
async def _closing(client: aiomqtt.Client) -> AsyncIterator[None]:
    """Retrieve the result of a connection that ended while no task reads it; else asyncio logs an error."""
    try:
        yield
    finally:
        ended = client._disconnected  # noqa: SLF001 - there is no other way to it
        if ended.done() and not ended.cancelled():
            ended.exception()


def _ping_at_half(client: aiomqtt.Client) -> None:
    """Let a connected client ping at half of the keep-alive, as firmware does."""
    inner = _paho(client)
    inner._keepalive = max(1, inner._keepalive // 2)  # noqa: SLF001


def _connect_via_relay(client: aiomqtt.Client, port: int, seconds: float) -> None:
    """Connect a client through the relay, while host name and certificate stay those of the broker."""

    def connect() -> socket.socket:
        return socket.create_connection(("127.0.0.1", port), timeout=seconds)

    _paho(client)._create_socket_connection = connect  # type: ignore[method-assign] # noqa: SLF001
