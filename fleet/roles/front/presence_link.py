"""The front's own connection to the broker, on which it publishes that devices are offline."""

from typing import Final

from fleet.adapters.net.mqtt.session import MqttSession
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.ground.tasks import Backoff, keep_running
from fleet.roles.front.presence import PresenceOutbox
from fleet.wire.identity import Credentials

_KEEPALIVE: Final = 20
_RECONNECT_SECONDS: Final = 5.0
"""Longest pause between attempts."""


class PresenceLink:
    """Publishes the messages of a `PresenceOutbox` at QoS 1, in order; reconnects without limit.

    Args:
        address: The broker.
        credentials: Client id, user name and password; see `MqttSession`.
        outbox: The messages. Its window keeps the backlog of the session far below `LARGEST_BACKLOG`.
    """

    def __init__(self, address: MqttAddress, credentials: Credentials, outbox: PresenceOutbox) -> None:
        self._address = address
        self._credentials = credentials
        self._outbox = outbox
        self._session: MqttSession | None = None
        self._backoff = Backoff(limit=_RECONNECT_SECONDS)

    def announce(self, mac: str, message: bytes) -> None:
        """Publish a device's presence as soon as possible; a later one replaces it while it waits."""
        self._outbox.put(mac, message)
        self._send()

    async def run(self) -> None:
        """Publish until cancelled."""
        await keep_running("front presence", self._connect, self._backoff)

    async def _connect(self) -> None:
        self._outbox.rewind()
        self._session = MqttSession(self._address, self._credentials, keepalive=_KEEPALIVE, on_puback=self._on_puback)
        await self._session.run(on_ready=self._on_ready)

    def _on_ready(self) -> None:
        self._backoff.reset()
        self._send()

    def _on_puback(self, packet_id: int) -> None:
        self._outbox.acknowledge(packet_id)
        self._send()

    def _send(self) -> None:
        if self._session is not None and self._session.connected:
            for topic, message, packet_id in self._outbox.take():
                self._session.publish(topic, message, packet_id)
