"""The way in through TLS: only who has finished the handshake, in time, reaches the server behind it."""

import asyncio
import errno
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)

SHUTDOWN_SECONDS = 2.0
"""Longest wait for the other end's goodbye; boards just go."""
_AT_ONCE = 64
"""Connections taken each time the listener has some; others wait for the next time round the loop."""
_PAUSE_SECONDS = 1.0
"""When nothing can be accepted, mostly because the process has too many files open."""


class TlsEntry:
    """Does the handshakes of a listener.

    `create_server(ssl=…)` leaves a connection alone with its handshake for a minute, uncounted and without a bound.

    Args:
        context: Of the server.
        group: Owns the handshakes.
        counts: Counts who does not come through: `tls` for a failed or slow handshake, `tls full` beyond `most`.
        seconds: Longest handshake.
        most: Handshakes at a time; for one more the oldest is ended.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        group: asyncio.TaskGroup,
        counts: Counter[str],
        *,
        seconds: float = 5.0,
        most: int = 1000,
    ) -> None:
        self._context = context
        self._group = group
        self._counts = counts
        self._seconds = seconds
        self._most = most
        self._entering: dict[asyncio.Task[None], None] = {}  # the oldest first

    @property
    def entering(self) -> int:
        """Connections in their handshake."""
        return len(self._entering)

    @contextmanager
    def open(self, listener: socket.socket, server: Callable[[], asyncio.Protocol]) -> Iterator[None]:
        """Accept connections during the block; the listener is closed at its end.

        Args:
            listener: Listens already.
            server: Makes the protocol of a connection, once its handshake is done.
        """
        listener.setblocking(False)
        loop, later = asyncio.get_running_loop(), None

        def accept() -> None:
            nonlocal later
            try:
                for _ in range(_AT_ONCE):
                    self._begin(listener.accept()[0], server)
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE):  # of that fleet.adapters.net.descriptors tells
                    log.warning("cannot accept connections", extra={"reason": str(error)})
                loop.remove_reader(listener)
                later = loop.call_later(_PAUSE_SECONDS, loop.add_reader, listener, accept)

        loop.add_reader(listener, accept)
        try:
            yield
        finally:
            if later is not None:
                later.cancel()
            loop.remove_reader(listener)
            listener.close()

    def _begin(self, connection: socket.socket, server: Callable[[], asyncio.Protocol]) -> None:
        if len(self._entering) >= self._most:
            oldest = next(iter(self._entering))
            self._entering.pop(oldest)
            oldest.cancel()
            self._counts["tls full"] += 1
        task = self._group.create_task(self._enter(connection, server), name="tls handshake")
        self._entering[task] = None

        def forget(_: asyncio.Task[None]) -> None:
            self._entering.pop(task, None)
            if task.cancelled():
                connection.close()  # nobody else does for a task that was ended before its first step

        task.add_done_callback(forget)

    async def _enter(self, connection: socket.socket, server: Callable[[], asyncio.Protocol]) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: _Threshold(server),
                connection,
                ssl=self._context,
                ssl_handshake_timeout=self._seconds,
                ssl_shutdown_timeout=SHUTDOWN_SECONDS,
            )
        except OSError as error:  # also SSLError and what a time-out gives
            self._counts["tls"] += 1
            log.debug("handshake failed", extra={"reason": str(error) or type(error).__name__})


class _Threshold(asyncio.Protocol):
    """Stands in until the handshake is done, so that nobody before it costs the server anything."""

    def __init__(self, server: Callable[[], asyncio.Protocol]) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        server = self._server()
        transport.set_protocol(server)
        server.connection_made(transport)
