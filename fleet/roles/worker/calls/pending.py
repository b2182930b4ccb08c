"""The requests of this process that wait for answers of devices."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from fleet.wire.messages import ResponseEvent

DISCONNECTED = ResponseEvent("", error="the device disconnected")
"""The answer to all pending requests of a device that went offline."""


class PendingCalls:
    """Futures by device and request id. Each is registered before its request is sent, and always removed."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, asyncio.Future[ResponseEvent]]] = {}

    @contextmanager
    def register(self, mac: str, number: int) -> Iterator[asyncio.Future[ResponseEvent]]:
        """Register a future for the answer to a request that is about to be sent."""
        answer: asyncio.Future[ResponseEvent] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(mac, {})[str(number)] = answer
        try:
            yield answer
        finally:
            mine = self._waiting[mac]
            del mine[str(number)]
            if not mine:
                del self._waiting[mac]

    def resolve(self, mac: str, answer: ResponseEvent) -> bool:
        """Set the future of an answer; return False if there is none."""
        waiting = self._waiting.get(mac, {}).get(answer.id)
        if waiting is None:
            return False
        if not waiting.done():
            waiting.set_result(answer)
        return True

    def disconnect(self, mac: str) -> None:
        """Set all futures of a device to `DISCONNECTED`."""
        for waiting in self._waiting.get(mac, {}).values():
            if not waiting.done():
                waiting.set_result(DISCONNECTED)
