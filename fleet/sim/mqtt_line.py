"""The device's MQTT connection: clean sessions, QoS 0, no subscription ever, a new attempt 10 s after a loss."""

import asyncio
import contextlib
import ssl
from collections.abc import Callable

import aiomqtt

from fleet.sim.ota import MqttAccess
from fleet.sim.owner import Owner

TLS_PORT = 8883
_MOST_WAITING = 256

OnMessage = Callable[[bytes, int], None]
"""Takes a payload and the length of its topic in bytes."""


class MqttLine:
    """Keeps one connection up, also while the device is idle.

    Args:
        access: What bootstrap said.
        owner: Whose steps, counters and waiters these are.
        on_message: Given every message, whatever its topic.
        tls: Trust for port 8883; the public authorities without it.
    """

    def __init__(
        self,
        access: MqttAccess,
        owner: Owner,
        on_message: OnMessage,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._access = access
        self._timing = owner.profile.timing
        self._journal = owner.journal
        self._on_message = on_message
        self._tls = tls
        self._client: aiomqtt.Client | None = None
        self._hurry = asyncio.Event()
        self._changed = owner.signal

    @property
    def up(self) -> bool:
        return self._client is not None

    async def run(self) -> None:
        """Connect for ever."""
        while True:
            await self._connect_once()
            self._hurry.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._timing.reconnect):
                    await self._hurry.wait()

    async def ready(self, seconds: float) -> bool:
        """Wait until the connection is up; ends a pause between attempts."""
        self._hurry.set()
        return await self._changed.within(seconds, lambda: self.up)

    async def publish(self, text: str) -> bool:
        """Publish on the device's topic; return False when that cannot be."""
        if self._client is None or not self._access.publish_topic:
            self._journal.count("mqtt_unsent")
            return False
        try:
            await self._client.publish(self._access.publish_topic, text.encode(), qos=0)
        except (aiomqtt.MqttError, ValueError):
            self._journal.count("mqtt_unsent")
            return False
        _honour_cancellation()
        self._journal.count("mqtt_sent")
        return True

    async def _connect_once(self) -> None:
        try:
            async with self._new_client() as client:
                _honour_cancellation()
                _ping_at_half(client)
                self._client = client
                self._changed.notify()
                self._journal.note("mqtt up", client_id=self._access.client_id)
                async for message in client.messages:
                    self._journal.count("mqtt_received")
                    self._on_message(message.payload, len(message.topic.value))
        except (aiomqtt.MqttError, OSError) as error:
            self._journal.note("mqtt down", reason=str(error))
        finally:
            self._client = None
            self._changed.notify()

    def _new_client(self) -> aiomqtt.Client:
        host, _, port = self._access.endpoint.partition(":")
        number = int(port) if port else TLS_PORT
        return aiomqtt.Client(
            host,
            number,
            identifier=self._access.client_id,
            username=self._access.username or None,
            password=self._access.password or None,
            clean_session=True,
            keepalive=self._access.keepalive,
            timeout=self._timing.mqtt_connect,
            max_queued_incoming_messages=_MOST_WAITING,
            tls_context=(self._tls or ssl.create_default_context()) if number == TLS_PORT else None,
        )


def _honour_cancellation() -> None:
    """Raise a cancellation that asyncio.wait_for, used by aiomqtt, swallowed because its result came with it."""
    task = asyncio.current_task()
    if task and task.cancelling():
        raise asyncio.CancelledError


def _ping_at_half(client: aiomqtt.Client) -> None:
    """Let a connected client ping at half of what it told the broker, as firmware does."""
    paho = client._client  # noqa: SLF001 - neither library has a way to ping earlier than the keep-alive
    paho._keepalive = max(1, paho._keepalive // 2)  # noqa: SLF001
