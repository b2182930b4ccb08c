"""The requests of this process that wait for answers of devices."""

import asyncio
from typing import Generic, TypeVar

T = TypeVar("T")


class PendingCalls(Generic[T]):
    """Futures by device and request id. Each is registered before its request is sent, and always removed.

    Args:
        disconnected: The answer to all pending requests of a device that went offline.
    """

    def __init__(self, disconnected: T) -> None:
        self._disconnected = disconnected
        self._waiting: dict[str, dict[str, list[asyncio.Future[T]]]] = {}
        """A request that is made twice at once is sent once, and its answer is for both."""
        self.devices = self._waiting.keys()
        """Those to which any request waits for its answer."""

    def awaits(self, mac: str, request: str) -> bool:
        """Whether a request waits for its answer."""
        return request in self._waiting.get(mac, ())

    def register(self, mac: str, number: int) -> "_Registered[T]":
        """Register a future for the answer to a request that is about to be sent, during a `with`."""
        return _Registered(self._waiting, mac, str(number))

    def resolve(self, mac: str, request: str, answer: T) -> bool:
        """Set the futures of a request; return False if there is none."""
        waiting = self._waiting.get(mac, {}).get(request, [])
        for one in waiting:
            _set(one, answer)
        return bool(waiting)

    def disconnect(self, mac: str) -> None:
        """Answer all requests of a device that went offline."""
        for waiting in self._waiting.get(mac, {}).values():
            for one in waiting:
                _set(one, self._disconnected)


class _Registered(Generic[T]):
    """A future among those that wait; a generator costs twice as much, and every request opens such a block."""

    __slots__ = ("_answer", "_mac", "_request", "_waiting")

    def __init__(self, waiting: dict[str, dict[str, list[asyncio.Future[T]]]], mac: str, request: str) -> None:
        self._waiting = waiting
        self._mac = mac
        self._request = request
        self._answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def __enter__(self) -> asyncio.Future[T]:
        self._waiting.setdefault(self._mac, {}).setdefault(self._request, []).append(self._answer)
        return self._answer

    def __exit__(self, *_: object) -> None:
        requests = self._waiting[self._mac]
        both = requests[self._request]
        both.remove(self._answer)
        if not both:
            del requests[self._request]
        if not requests:
            del self._waiting[self._mac]


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
