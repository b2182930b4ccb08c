"""The MQTT session of a shard without a broker."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from fleet.ground.errors import Unavailable
from fleet.wire.topics import down_topic


class SilentSession:
    """A `ShardSession` that is connected at once, keeps what is published, and receives nothing."""

    def __init__(self) -> None:
        self.published: list[tuple[str, bytes]] = []
        self.fault: Exception | None = None
        """Raised by `publish`."""
        self._connected = False

    @property
    def connected(self) -> bool:
        return self._connected

    async def run(self, on_ready: Callable[[], None], on_greeted: Callable[[], None]) -> None:
        self._connected = True
        on_greeted()
        on_ready()
        await asyncio.Event().wait()

    def publish(self, topic: str, payload: bytes) -> None:
        if self.fault is not None:
            raise self.fault
        if not self._connected:
            raise Unavailable("not connected")
        self.published.append((topic, payload))

    async def drain(self, seconds: float) -> None:
        return

    def sent(self, mac: str) -> list[dict[str, Any]]:
        """Return the messages to a device so far."""
        return [json.loads(payload) for topic, payload in self.published if topic == down_topic(mac)]
