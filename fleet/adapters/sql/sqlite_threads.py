"""Runs functions that read from SQLite, each in a thread."""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Generic, TypeVar

from sqlalchemy import Connection, Engine

T = TypeVar("T")
_AGAIN_SECONDS = 0.05
"""Between two interrupts: one that comes between two statements does nothing."""


class SqliteThreads:
    """Runs functions that read from SQLite.

    Args:
        engine: Gives each thread its connection.
        count: Threads.
    """

    def __init__(self, engine: Engine, count: int) -> None:
        self._engine = engine
        self._threads = ThreadPoolExecutor(count, "sqlite")

    async def run(self, read: Callable[[Connection], T], ended: Callable[[], None]) -> T:
        """Run a function; when its caller is cancelled, its statements are interrupted.

        Args:
            read: The function.
            ended: Called when the thread is free, which is later than the end of a caller that was cancelled.
        """
        loop, work = asyncio.get_running_loop(), _Work(self._engine, read)
        future = self._threads.submit(work.run)
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(ended))
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            _interrupt(loop, work, future)
            raise

    async def close(self) -> None:
        """Wait for the threads, and close their connections."""
        await asyncio.to_thread(self._threads.shutdown)
        self._engine.dispose()


class _Work(Generic[T]):
    """A function that reads, and the connection that it has at the moment."""

    def __init__(self, engine: Engine, read: Callable[[Connection], T]) -> None:
        self._engine, self._read = engine, read
        self._lock = Lock()
        self._used: sqlite3.Connection | None = None

    def run(self) -> T:
        with self._engine.connect() as connection:
            driver = connection.connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)  # noqa: S101 - for the type checker
            self._use(driver)
            try:
                return self._read(connection)
            finally:
                self._use(None)

    def interrupt(self) -> None:
        with self._lock:
            if self._used is not None:
                self._used.interrupt()

    def _use(self, connection: sqlite3.Connection | None) -> None:
        with self._lock:
            self._used = connection


def _interrupt(loop: asyncio.AbstractEventLoop, work: "_Work[T]", future: "Future[T]") -> None:
    if not future.done():
        work.interrupt()
        loop.call_later(_AGAIN_SECONDS, _interrupt, loop, work, future)
