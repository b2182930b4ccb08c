"""Count what the fleet plugin of Mosquitto refused inside the broker."""

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
"""The counters of the plugin."""

_LONGEST = 20
_RECONNECT_SECONDS = 10.0


class PluginCounts:
    """Adds the plugin's counters to the metrics.

    The plugin publishes the totals since its start every few seconds. All workers receive them, but only the owner of
    one shard counts them: so the sum over all workers is right. While that shard changes its owner, a difference may be
    lost, but is never counted twice.

    The MQTT session for this opens only after a message of the plugin came: other brokers end a connection that
    subscribes to these topics.

    Args:
        address: The broker.
        credentials: Returns credentials for each connection, as keys may have changed. Their client id is used by this
            session alone.
        counting: Returns whether this worker counts.
        counts: Are increased, with keys like `broker: floods`.
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
        self._latest: dict[str, int] = {}
        self._plugin_present = asyncio.Event()
        self._backoff = Backoff(limit=_RECONNECT_SECONDS)

    def plugin_seen(self) -> None:
        """Note that the broker runs the plugin."""
        self._plugin_present.set()

    async def run(self) -> None:
        """Listen until cancelled."""
        await self._plugin_present.wait()
        await keep_running("plugin counts", self._listen, self._backoff)

    def receive(self, topic: str, payload: bytes) -> None:
        """Take one counter; ignore other payloads, because the broker owns these topics."""
        kind = topic.removeprefix(PREFIX)
        if kind not in KINDS or not payload.isdigit() or len(payload) > _LONGEST:
            return
        now, before = int(payload), self._latest.get(kind)
        self._latest[kind] = now
        if before is None or not self._counting():
            # The first value is the base: earlier refusals are not counted.
            return
        # A broker that restarted counts from 0.
        if grown := now - before if now >= before else now:
            self._counts[f"broker: {kind}"] += grown

    async def _listen(self) -> None:
        session = MqttSession(self._address, self._credentials(), reading=Reading([FILTER], self._receive))
        await session.run(self._backoff.reset)

    async def _receive(self, topic: str, payload: bytes) -> None:
        self.receive(topic, payload)
