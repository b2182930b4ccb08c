"""The HTTP server behind TLS."""

import asyncio

from starlette.types import ASGIApp

from fleet.adapters.net.http.connection import Bounds
from fleet.adapters.net.http.server import HttpServer
from fleet.adapters.net.tls.certificate import ServerCertificate
from fleet.adapters.net.tls.small_tls import SmallTlsAcceptor

LOCAL_PROXIES = "127.0.0.1,::1"
MOST_WITH_TLS = 2048
"""Connections, each of up to 120 KB: all of them, the handshakes and the process fit into a container of 512 MiB."""
MOST_HANDSHAKES = 512
"""At a time, each of up to 200 KB: a client that claims a large hello makes OpenSSL reserve all of it."""


class HttpsServer(HttpServer):
    """Serves an app over HTTPS until cancelled; see `HttpServer`.

    Args:
        app: The application.
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one.
        certificate: The server's certificate; its creator keeps it up to date.
        bounds: Of its connections, after their handshakes; of `MOST_WITH_TLS` connections by default.
        proxies: See `HttpServer`.
    """

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        port: int,
        certificate: ServerCertificate,
        *,
        bounds: Bounds | None = None,
        proxies: str = LOCAL_PROXIES,
    ) -> None:
        super().__init__(app, host, port, bounds=bounds or Bounds(connections=MOST_WITH_TLS), proxies=proxies)
        self._certificate = certificate

    async def _serve(self) -> None:
        config = self._server.config
        config.load()

        def connection() -> asyncio.Protocol:
            state = self._server.server_state
            return config.http_protocol_class(config=config, server_state=state, app_state={})  # type: ignore[call-arg] # as uvicorn itself calls it

        async with asyncio.TaskGroup() as handshakes:
            entry = SmallTlsAcceptor(self._certificate.context, handshakes, self.counts, most=MOST_HANDSHAKES)
            with entry.open(self._socket, connection):
                await self._server.serve(sockets=[])

    def _close(self) -> None:
        # The acceptor closes the socket itself; until then new connections stay in the backlog.
        if self._socket.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._socket)
