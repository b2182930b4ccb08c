"""Many commands on one connection: written as they come, answered in order.

redis-py uses one connection for every command in flight, and 100 to 200 µs of CPU time for each; here the commands of
one loop iteration are written together (docs/performance-history.md). redis-py still opens the connection: TLS,
passwords, Sentinels.
"""

import asyncio
import math
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, cast

import hiredis
from redis.asyncio import ConnectionPool
from redis.asyncio.connection import AbstractConnection, DefaultParser
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ReadOnlyError
from redis.exceptions import TimeoutError as RedisTimeoutError

Words = Sequence[Any]

_NOTHING: Final = object()
MOST_CALLERS = 64
GATHER_SECONDS: Final = 0.002
"""Least time between two flushes while commands come often: each flush wakes up Redis, and its answer wakes us up; a
wake-up costs more than a command."""
BUSY_FLUSHES: Final = 16
BUSY_SECONDS: Final = 0.04
"""Commands come often while the last `BUSY_FLUSHES` took less than this, which one turn alone hardly reaches."""


class _PendingReply:
    """The commands of one caller, and the answers so far."""

    __slots__ = ("answers", "at", "count", "done")

    def __init__(self, count: int, done: "asyncio.Future[list[Any]]", at: float) -> None:
        self.count = count
        self.done = done
        self.at = at
        self.answers: list[Any] = []


class _Wire(asyncio.Protocol):
    """One connection, taken over from redis-py.

    Args:
        connection: Connected, and used by nobody else.
        limit: Longest wait for an answer in seconds.
    """

    def __init__(self, connection: AbstractConnection, limit: float) -> None:
        self.connection = connection
        self._limit = limit
        self._watching = False
        writer = connection._writer  # noqa: SLF001 - redis-py has no other way to its transport
        if writer is None:
            raise RedisConnectionError("the connection ended at once")
        self._transport = cast("asyncio.Transport", writer.transport)
        self._former = self._transport.get_protocol()
        self._waiting: deque[_PendingReply] = deque()
        self._unsent: list[bytes] = []
        self._flushed = deque([-math.inf, 0.0], maxlen=BUSY_FLUSHES)
        """Times of the last flushes."""
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(
            encoding="utf-8", errors="replace", replyError=DefaultParser.parse_error, notEnoughData=_NOTHING
        )
        self.lost = False
        self._transport.set_protocol(self)

    def offer(self, words: Words) -> "asyncio.Future[list[Any]] | None":
        """Send a command as `send` does; None if so many callers wait for answers that others should wait before."""
        return None if self.lost or len(self._waiting) >= MOST_CALLERS else self.send((words,))

    def send(self, commands: Sequence[Words]) -> "asyncio.Future[list[Any]]":
        """Send commands and return a future of all their answers; an error counts as an answer.

        Raises:
            UnicodeEncodeError, TypeError: A word cannot be written; nothing was sent.
        """
        # First: a caller that waits for the answer to what was never written would get the next caller's answer.
        written = [*map(hiredis.pack_command, map(tuple, commands))]
        done: asyncio.Future[list[Any]] = self._loop.create_future()
        self._waiting.append(_PendingReply(len(commands), done, self._loop.time()))
        if not self._watching:
            self._watch()
        if not self._unsent:
            self._schedule()
        self._unsent += written
        return done

    def data_received(self, data: bytes) -> None:
        try:
            self._reader.feed(data)
            while (answer := self._reader.gets()) is not _NOTHING:
                if not isinstance(answer, hiredis.PushNotification):
                    self._take(answer)
        except (hiredis.ProtocolError, IndexError) as error:
            self.abort(RedisConnectionError(f"not understood: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        self.abort(RedisConnectionError(str(exc) if exc else "the server closed the connection"))
        self._former.connection_lost(exc)

    def abort(self, reason: Exception) -> None:
        """End the connection; the outcome of unanswered commands is unknown."""
        self.lost = True
        # With TLS, Python 3.11.2's transport cannot be aborted once it is closed.
        if not self._transport.is_closing():
            self._transport.abort()
        while self._waiting:
            pending = self._waiting.popleft()
            if not pending.done.done():
                pending.done.set_exception(reason)

    def _schedule(self) -> None:
        """Flush at the end of this loop iteration; under load, not before `GATHER_SECONDS` after the last flush."""
        now, flushed = self._loop.time(), self._flushed
        if flushed[-1] - flushed[0] < BUSY_SECONDS and (left := flushed[-1] + GATHER_SECONDS - now) > 0:
            self._loop.call_later(left, self._flush)
        else:
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Write the commands that wait in one system call: it costs more than the rest of a command."""
        self._flushed.append(self._loop.time())
        if not self._transport.is_closing():
            self._transport.write(b"".join(self._unsent))
        self._unsent.clear()

    def _watch(self) -> None:
        """Check the oldest command's time limit; one timer for all commands costs less than one for each."""
        self._watching = bool(self._waiting) and not self.lost
        if not self._watching:
            return
        left = self._waiting[0].at + self._limit - self._loop.time()
        if left > 0:
            self._loop.call_later(left, self._watch)
        else:
            self.abort(RedisTimeoutError("no answer in time"))

    def _take(self, answer: Any) -> None:
        pending = self._waiting[0]
        answers = pending.answers
        answers.append(answer)
        if len(answers) == pending.count:
            self._waiting.popleft()
            if not pending.done.done():  # the caller may have been cancelled
                pending.done.set_result(answers)


class PipelinedConnection:
    """One shared connection to a server; connects when needed, and again when the connection was lost.

    Callers bound the number of unanswered commands and their waiting time.

    Args:
        pool: Opens connections.
        limit: Longest wait for an answer in seconds, when there is a connection.
    """

    def __init__(self, pool: ConnectionPool, limit: float) -> None:
        self._pool = pool
        self._limit = limit
        self._wire: _Wire | None = None
        self._connecting = asyncio.Lock()

    @property
    def connected(self) -> bool:
        """Whether there is a connection, so that the next command is answered or fails within the limit."""
        return self._wire is not None and not self._wire.lost

    def send(self, words: Words) -> "asyncio.Future[list[Any]] | None":
        """Send a command at once; return the future of its answer, or None if it would have to wait.

        The answer is a list of one, which may be an error of the server. The future fails if the connection does.
        """
        return None if self._wire is None else self._wire.offer(words)

    async def ask(self, commands: Sequence[Words]) -> list[Any]:
        """Send commands together and return their answers in their order.

        Raises:
            RedisError, OSError: A command was refused (the others still run), or the connection failed.
        """
        wire = self._wire
        if wire is None or wire.lost:
            wire = await self._connect()
        answers = await wire.send(commands)
        for answer in answers:
            if isinstance(answer, ReadOnlyError):
                # Not the primary any more: the next attempt has to find the new one.
                wire.abort(RedisConnectionError("the server is a replica now"))
            if isinstance(answer, Exception):
                raise answer
        return answers

    async def drop(self) -> None:
        """End the connection, if there is one; the next command opens another."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.abort(RedisConnectionError("the connection was given up"))
            await wire.connection.disconnect(nowait=True)
            await self._pool.release(wire.connection)

    async def _connect(self) -> _Wire:
        async with self._connecting:
            wire = self._wire
            if wire is None or wire.lost:
                await self.drop()
                wire = self._wire = _Wire(await self._pool.get_connection(), self._limit)  # type: ignore[no-untyped-call] # by redis-py
            return wire
