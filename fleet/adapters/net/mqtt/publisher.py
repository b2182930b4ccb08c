"""Publishing for roles that receive nothing over MQTT: edge and api."""

import logging
from collections.abc import Callable

from fleet.adapters.net.mqtt.session import MqttSession
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.ground.errors import Overloaded, Unavailable
from fleet.ground.tasks import Backoff, keep_running
from fleet.wire.identity import Credentials

log = logging.getLogger(__name__)

_RECONNECT_SECONDS = 2.0
"""Longest pause between attempts: without a connection devices get audio, but no messages."""


class Publisher:
    """Keeps one clean session alive.

    Messages that cannot be sent at once are dropped and counted: a late command to a device is useless.

    Args:
        address: The broker.
        credentials: With a client id of this process alone; a second process with the same id would end this one's
            session. Or a function that returns them for each connection, because keys may change.
        keepalive: In seconds, None for the usual one.
    """

    def __init__(
        self,
        address: MqttAddress,
        credentials: Credentials | Callable[[], Credentials],
        *,
        keepalive: int | None = None,
    ) -> None:
        self._address = address
        self._credentials = credentials
        self._keepalive = keepalive
        self._backoff = Backoff(limit=_RECONNECT_SECONDS)
        self._session: MqttSession | None = None
        self.dropped = 0
        """Messages that were not sent."""

    @property
    def connected(self) -> bool:
        return self._session is not None and self._session.connected

    async def run(self) -> None:
        """Keep connected until cancelled."""
        await keep_running("mqtt publisher", self._connect, self._backoff)

    def publish(self, topic: str, payload: bytes) -> bool:
        """Send a message once at QoS 0; return whether the connection accepted it."""
        try:
            if self._session is None:
                raise Unavailable("not connected yet")
            self._session.publish(topic, payload)
        except (Unavailable, Overloaded) as error:
            self.dropped += 1
            log.warning("message dropped", extra={"topic": topic, "reason": str(error)})
            return False
        return True

    async def _connect(self) -> None:
        credentials = self._credentials() if callable(self._credentials) else self._credentials
        self._session = MqttSession(self._address, credentials, keepalive=self._keepalive)
        await self._session.run(on_ready=self._backoff.reset)
