"""The requests of this process that wait for answers of devices."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class PendingCalls(Generic[T]):
    """Futures by device and request id. Each is registered before its request is sent, and always removed.

    Args:
        disconnected: The answer to all pending requests of a device that went offline.
    """

    def __init__(self, disconnected: T) -> None:
        self._disconnected = disconnected
        self._waiting: dict[str, dict[str, asyncio.Future[T]]] = {}

    def awaits(self, mac: str, request: str = "") -> bool:
        """Whether a request waits for its answer; without its id, whether any request to the device does."""
        waiting = self._waiting.get(mac, {})
        return request in waiting if request else bool(waiting)

    @contextmanager
    def register(self, mac: str, number: int) -> Iterator[asyncio.Future[T]]:
        """Register a future for the answer to a request that is about to be sent."""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(mac, {})[str(number)] = answer
        try:
            yield answer
        finally:
            mine = self._waiting[mac]
            del mine[str(number)]
            if not mine:
                del self._waiting[mac]

    def resolve(self, mac: str, request: str, answer: T) -> bool:
        """Set the future of a request; return False if there is none."""
        waiting = self._waiting.get(mac, {}).get(request)
        if waiting is not None:
            _set(waiting, answer)
        return waiting is not None

    def disconnect(self, mac: str) -> None:
        """Answer all requests of a device that went offline."""
        for waiting in self._waiting.get(mac, {}).values():
            _set(waiting, self._disconnected)


async def wait_for_answer(answer: asyncio.Future[T], seconds: float, otherwise: T) -> T:
    """Return the answer; `otherwise` if none comes in time. The timer costs less than `asyncio.timeout`."""
    timer = asyncio.get_running_loop().call_later(seconds, _set, answer, otherwise)
    try:
        return await answer
    finally:
        timer.cancel()


def _set(waiting: asyncio.Future[T], answer: T) -> None:
    if not waiting.done():
        waiting.set_result(answer)
