"""An HTTP server inside this process's event loop."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from fleet.adapters.net.http.connection import BoundedConnection, Bounds
from fleet.adapters.net.listening import listen
from fleet.core.proxies import Proxies
from fleet.ground.errors import ConfigError

log = logging.getLogger(__name__)

LATE_SECONDS = 0.3
"""Seconds that a stopping server still accepts connections: load balancers may not know of the stop yet."""
_LOOK_SECONDS = 0.05
_END_SECONDS = 1.0
"""Seconds for a request to notice that its client is gone, and once more to end after it was cancelled."""


class HttpServer:
    """Serves an app until cancelled.

    Args:
        app: The application.
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one.
        bounds: Of its connections.
        proxies: Addresses or networks, separated by commas, whose X-Forwarded headers are trusted, and which may have
            all connections.

    Raises:
        ConfigError: The address is in use or not this machine's.
    """

    def __init__(
        self, app: ASGIApp, host: str, port: int, *, bounds: Bounds | None = None, proxies: str = "127.0.0.1,::1"
    ) -> None:
        self.bounds = bounds or Bounds()
        self.bounds.proxies = Proxies(proxies)
        self.counts: Counter[str] = Counter()
        """Failed TLS handshakes."""
        try:
            self._socket = listen(host, port, 1024)
        except OSError as error:
            raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
        self.port: int = self._socket.getsockname()[1]
        self._server = _Server(
            uvicorn.Config(
                app,
                http=BoundedConnection.within(self.bounds),
                ws="none",
                log_config=None,
                access_log=False,
                lifespan="off",
                forwarded_allow_ips=proxies,
                timeout_graceful_shutdown=2,
            )
        )

    async def drain(self, seconds: float) -> None:
        """Accept no new connections, and wait up to `seconds` until running requests are answered.

        With 0 seconds running requests end with `run`.
        """
        if not seconds:
            return
        await asyncio.sleep(min(LATE_SECONDS, seconds))
        self._close()
        connections = self._server.server_state.connections
        for connection in list(connections):
            # A connection without a request closes at once, the others after their answer.
            connection.shutdown()
        try:
            async with asyncio.timeout(seconds):
                while connections:  # noqa: ASYNC110 - uvicorn has no event for the end of a connection
                    await asyncio.sleep(_LOOK_SECONDS)
        except TimeoutError:
            log.warning("drain limit exceeded, some requests were not answered", extra={"requests": len(connections)})

    async def run(self) -> None:
        try:
            await self._serve()
        finally:
            # A cancelled uvicorn leaves all of this open; the loop would then watch a descriptor that is reused.
            self._close()
            self._socket.close()
            await self._end_requests()

    async def _serve(self) -> None:
        await self._server.serve(sockets=[self._socket])

    async def _end_requests(self) -> None:
        """Cut the connections, and wait for their requests: what these opened is closed when `run` returns.

        They are not cancelled at once, because Starlette leaves a file open that it is closing in a thread.
        """
        state = self._server.server_state
        for connection in list(state.connections):
            connection.transport.abort()
        left = set(state.tasks)
        if left:
            _, left = await asyncio.wait(left, timeout=_END_SECONDS)
        for task in left:
            task.cancel("the server ends")
        if left:
            _, left = await asyncio.wait(left, timeout=_END_SECONDS)
        if left:
            log.warning("requests go on after their server's end", extra={"requests": len(left)})

    def _close(self) -> None:
        for listener in getattr(self._server, "servers", ()):
            listener.close()


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: the process's runtime handles signals."""
        yield
