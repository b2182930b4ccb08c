"""Learn over MQTT that a shard has lost its owner, before its lease expires."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable

from fleet.adapters.net.mqtt.session import MqttSession, Reading
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.ground.errors import Overloaded, Unavailable
from fleet.ground.metrics import broker as metrics
from fleet.ground.tasks import Backoff, keep_running
from fleet.wire.identity import Credentials
from fleet.wire.topics import lost_topic

log = logging.getLogger(__name__)

_RECONNECT_SECONDS = 2.0
_LOST = re.compile(r"fleet/shard/(\d{1,3})/lost")
_FENCE = re.compile(rb"(\d{1,20})( released)?")

OnLost = Callable[[int, str, bool], Awaitable[None]]
"""Called with the shard, the fence of its last owner, and whether that owner released it."""


class OwnerLossListener:
    """Listens for losses of all shards in one clean MQTT session.

    The Will of a shard's session has its owner's fence: the broker publishes it when the owner's connection breaks. An
    owner that releases a shard publishes on the same topic.

    Args:
        address: The broker.
        credentials: Returns credentials for each connection, as keys may have changed. Their client id is used by this
            session alone.
        on_lost: Called for every loss, those of this worker too.
    """

    def __init__(self, address: MqttAddress, credentials: Callable[[], Credentials], on_lost: OnLost) -> None:
        self._address = address
        self._credentials = credentials
        self._on_lost = on_lost
        self._session: MqttSession | None = None
        self._backoff = Backoff(limit=_RECONNECT_SECONDS)
        self.reached = asyncio.Event()
        """Set after the first connection to the broker."""

    @property
    def connected(self) -> bool:
        """Whether this worker is connected to the broker."""
        return self._session is not None and self._session.connected

    async def run(self) -> None:
        """Listen until cancelled."""
        await keep_running("owner losses", self._listen, self._backoff)

    def announce(self, shard: int, fence: str) -> None:
        """Announce that a shard was released; if this fails, other workers find the free shard in Redis."""
        try:
            if self._session is None:
                raise Unavailable("not connected yet")
            self._session.publish(lost_topic(shard), f"{fence} released".encode())
        except (Unavailable, Overloaded) as error:
            log.warning("release not announced", extra={"shard": shard, "reason": str(error)})

    async def _listen(self) -> None:
        reading = Reading(["fleet/shard/+/lost"], self._receive)
        self._session = MqttSession(self._address, self._credentials(), reading=reading)
        await self._session.run(self._be_ready)

    def _be_ready(self) -> None:
        self._backoff.reset()
        self.reached.set()

    async def _receive(self, topic: str, payload: bytes) -> None:
        shard, match = _LOST.fullmatch(topic), _FENCE.fullmatch(payload)
        if shard is None or match is None:
            metrics.malformed.add("loss")
            log.warning("malformed loss of a shard", extra={"topic": topic[:64]})
            return
        await self._on_lost(int(shard[1]), match[1].decode(), match[2] is not None)
