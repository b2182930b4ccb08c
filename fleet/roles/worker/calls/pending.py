"""The requests of this process that wait for answers of devices."""

import asyncio
from types import TracebackType
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

    def register(self, mac: str, number: int) -> "PendingCall[T]":
        """Register a request that is about to be sent; it is removed at the end of the block."""
        return PendingCall(self._waiting, mac, str(number))

    def resolve(self, mac: str, request: str, answer: T) -> bool:
        """Give a request its answer; return False if there is no such request."""
        waiting = self._waiting.get(mac, {}).get(request)
        if waiting is None:
            return False
        _set(waiting, answer)
        return True

    def disconnect(self, mac: str) -> None:
        """Answer all requests of a device that went offline."""
        for waiting in self._waiting.get(mac, {}).values():
            _set(waiting, self._disconnected)


class PendingCall(Generic[T]):
    """One request, registered inside its block."""

    __slots__ = ("_answer", "_mac", "_request", "_waiting")

    def __init__(self, waiting: dict[str, dict[str, asyncio.Future[T]]], mac: str, request: str) -> None:
        self._waiting = waiting
        self._mac = mac
        self._request = request
        self._answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def __enter__(self) -> "PendingCall[T]":
        self._waiting.setdefault(self._mac, {})[self._request] = self._answer
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        mine = self._waiting[self._mac]
        del mine[self._request]
        if not mine:
            del self._waiting[self._mac]

    async def wait(self, seconds: float, otherwise: T) -> T:
        """Return the answer; `otherwise` if none comes in time. A timer costs a third of `asyncio.timeout`."""
        timer = asyncio.get_running_loop().call_later(seconds, _set, self._answer, otherwise)
        try:
            return await self._answer
        finally:
            timer.cancel()


def _set(waiting: asyncio.Future[T], answer: T) -> None:
    if not waiting.done():
        waiting.set_result(answer)
