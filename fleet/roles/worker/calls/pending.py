"""Who waits for which answer in this process."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from fleet.wire.messages import ResponseEvent

DISCONNECTED = ResponseEvent("", error="the device disconnected")
"""Given to those who wait for a device that went away."""


class PendingCalls:
    """Futures by device and request id; a waiter is registered before its request is sent and removed on every path."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, asyncio.Future[ResponseEvent]]] = {}

    @contextmanager
    def expect(self, mac: str, number: int) -> Iterator[asyncio.Future[ResponseEvent]]:
        """Give a future for the answer to a request that is about to be sent."""
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
        """Hand an answer to who waits for it; False when nobody does."""
        waiting = self._waiting.get(mac, {}).get(answer.id)
        if waiting is None:
            return False
        if not waiting.done():
            waiting.set_result(answer)
        return True

    def disconnect(self, mac: str) -> None:
        """Tell all who wait for a device that it went away."""
        for waiting in self._waiting.get(mac, {}).values():
            if not waiting.done():
                waiting.set_result(DISCONNECTED)
