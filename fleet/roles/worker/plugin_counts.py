"""What our Mosquitto plugin refused before a worker could hear of it."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Final

from fleet.adapters.net.mqtt.session import MqttSession, Reading
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.ground.tasks import Backoff, keep_running
from fleet.wire.identity import Credentials

PREFIX: Final = "$SYS/broker/fleet/refused/"
FILTER: Final = f"{PREFIX}+"
KINDS: Final = ("connections", "messages", "subscriptions", "floods")
"""What the plugin counts."""

_LONGEST = 20
_RECONNECT_SECONDS = 10.0


class PluginCounts:
    """Counts what the plugin publishes every few seconds, since its start, to all workers.

    All of them listen, and the one that counts is the owner of one shard: so the sum over all workers is right, and
    what happens while that shard changes its owner is counted by neither or one of them, never by both.

    It has a session of its own, from when the plugin was heard of: other brokers end a connection that asks for these
    topics.

    Args:
        address: The broker.
        credentials: Gives them for each connection, as keys may have changed; with a client id of this session alone.
        counting: Whether this worker is the one that counts.
        counts: Where they are counted, as `broker: floods`.
    """

    def __init__(
        self,
        address: MqttAddress,
        credentials: Callable[[], Credentials],
        counting: Callable[[], bool],
        counts: Counter[str],
    ) -> None:
        self._address = address
        self._credentials = credentials
        self._counting = counting
        self._counts = counts
        self._told: dict[str, int] = {}
        self._met = asyncio.Event()
        self._backoff = Backoff(limit=_RECONNECT_SECONDS)

    def meet(self) -> None:
        """Note that the broker has the plugin."""
        self._met.set()

    async def run(self) -> None:
        """Listen until cancelled."""
        await self._met.wait()
        await keep_running("plugin counts", self._listen, self._backoff)

    def hear(self, topic: str, payload: bytes) -> None:
        """Take one figure; what is none is ignored, for the topics are the broker's own."""
        kind = topic.removeprefix(PREFIX)
        if kind not in KINDS or not payload.isdigit() or len(payload) > _LONGEST:
            return
        now, before = int(payload), self._told.get(kind)
        self._told[kind] = now
        if before is None or not self._counting():
            # What was refused before this worker came is in no rate.
            return
        # A broker that began anew counts from 0.
        if grown := now - before if now >= before else now:
            self._counts[f"broker: {kind}"] += grown

    async def _listen(self) -> None:
        session = MqttSession(self._address, self._credentials(), reading=Reading([FILTER], self._receive))
        await session.run(self._backoff.reset)

    async def _receive(self, topic: str, payload: bytes) -> None:
        self.hear(topic, payload)
