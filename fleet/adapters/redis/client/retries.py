"""Time limits and retries of commands."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from redis.exceptions import (
    AskError,
    AuthenticationError,
    AuthorizationError,
    ClusterDownError,
    ClusterError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from fleet.ground.tasks import Backoff

T = TypeVar("T")

LIMIT_SECONDS = 5.0
"""Longest time of a command with all attempts; a shorter failover causes no failure."""
ANSWER_SECONDS = 2.5
"""Longest time of one attempt: a place among the connections, the connection, sending, and the answer."""
CONNECT_SECONDS = 2.0

FAULTS: Final = (RedisError, OSError, TimeoutError)
"""All exceptions that the client raises."""

_PASSING = (
    *(RedisConnectionError, RedisTimeoutError, ClusterError, OSError, TimeoutError),
    *(ReadOnlyError, ClusterDownError, TryAgainError, AskError),
)
_LASTING = (AuthenticationError, AuthorizationError)
_PASSING_WORDS = ("NOREPLICAS", "UNBLOCKED")
"""Errors without a class of their own: too few replicas, and a blocking read on what became a replica."""


def passes(error: BaseException) -> bool:
    """Whether the same command may succeed later: the server is away, loading, or not the primary any more."""
    if isinstance(error, _LASTING):
        return False
    if isinstance(error, _PASSING):
        return True
    return isinstance(error, ResponseError) and any(word in str(error) for word in _PASSING_WORDS)


class RetryPolicy:
    """Bounds the commands of one client in number and time, and repeats them while the server is away.

    A command whose connection broke may have been executed, so every command must be harmless when it is executed twice
    (docs/adr/0007-redis-failover.md shows it for each one).

    Args:
        places: Commands at a time; the others wait for a place.
        refresh: Called with the fault before each retry; closes connections to a server that is not the primary.
        answer: Longest time of one attempt in seconds.
    """

    def __init__(
        self, places: int, refresh: Callable[[BaseException], Awaitable[None]], answer: float = ANSWER_SECONDS
    ) -> None:
        self._places = asyncio.Semaphore(places)
        self._refresh = refresh
        self._answer = answer
        self.faults = 0
        """Failed attempts so far; a cache about the server is invalid when this number has grown."""

    async def run(self, once: Callable[[], Awaitable[T]], *, bounded: bool = False) -> T:
        """Run a command, with retries after temporary faults.

        Args:
            once: Makes one attempt.
            bounded: The first attempt has a time limit of its own; a second limit would cost more than the command.

        Raises:
            RedisError, OSError, TimeoutError: It was refused, or the time is over.
        """
        deadline = asyncio.get_running_loop().time() + LIMIT_SECONDS
        try:
            if bounded and not self._places.locked():
                async with self._places:
                    return await once()
            return await self._attempt(once)
        except FAULTS as error:
            self.faults += 1
            if not passes(error):
                raise
            return await self._again(once, error, deadline)

    async def _attempt(self, once: Callable[[], Awaitable[T]]) -> T:
        async with asyncio.timeout(self._answer), self._places:
            return await once()

    async def _again(self, once: Callable[[], Awaitable[T]], error: BaseException, deadline: float) -> T:
        pauses = Backoff(first=0.05, limit=0.5)
        try:
            async with asyncio.timeout_at(deadline):
                while True:
                    await pauses.pause()
                    try:
                        await self._refresh(error)
                        return await self._attempt(once)
                    except FAULTS as fault:
                        self.faults += 1
                        if not passes(fault):
                            raise
                        error = fault
        except TimeoutError:
            reason = str(error) or "no answer"
            raise RedisTimeoutError(f"gave up after {LIMIT_SECONDS:g} s: {reason}") from error
