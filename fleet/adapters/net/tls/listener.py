"""Accepts TLS connections: the server gets a connection only after a handshake within the time limit."""

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
"""Longest wait for the peer's close_notify; boards send none."""
_AT_ONCE = 64
"""Connections accepted in one loop iteration; others wait for the next one."""
_PAUSE_SECONDS = 1.0
"""Pause after a failed accept, mostly because the process has too many open files."""


class TlsAcceptor:
    """Does the handshakes of a listener.

    `create_server(ssl=…)` allows a minute for each handshake, and does not count or limit handshakes.

    Args:
        context: Of the server.
        group: Owns the handshakes.
        counts: Counts failures: `tls` for a failed or slow handshake, `tls full` beyond `most`.
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
        self._handshaking: dict[asyncio.Task[None], None] = {}  # the oldest first

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
                if error.errno not in (errno.EMFILE, errno.ENFILE):  # fleet.adapters.net.descriptors logs these
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
        if len(self._handshaking) >= self._most:
            oldest = next(iter(self._handshaking))
            self._handshaking.pop(oldest)
            oldest.cancel()
            self._counts["tls full"] += 1
        task = self._group.create_task(self._enter(connection, server), name="tls handshake")
        self._handshaking[task] = None

        def forget(_: asyncio.Task[None]) -> None:
            self._handshaking.pop(task, None)
            if task.cancelled():
                connection.close()  # a task that was cancelled before its first step did not close it

        task.add_done_callback(forget)

    async def _enter(self, connection: socket.socket, server: Callable[[], asyncio.Protocol]) -> None:
        try:
            await self._shake_hands(connection, _HandshakeProtocol(server))
        except OSError as error:  # also SSLError and the error of a time-out
            self._counts["tls"] += 1
            log.debug("handshake failed", extra={"reason": str(error) or type(error).__name__})

    async def _shake_hands(self, connection: socket.socket, protocol: asyncio.Protocol) -> None:
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: protocol,
            connection,
            ssl=self._context,
            ssl_handshake_timeout=self._seconds,
            ssl_shutdown_timeout=SHUTDOWN_SECONDS,
        )


class _HandshakeProtocol(asyncio.Protocol):
    """Creates the server's protocol only after the handshake, so that failed handshakes cost little."""

    def __init__(self, server: Callable[[], asyncio.Protocol]) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        server = self._server()
        transport.set_protocol(server)
        server.connection_made(transport)
