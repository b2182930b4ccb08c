"""The gateway's two ports: a plain one, and one with TLS if there is a certificate."""

import asyncio
import errno
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from websockets.asyncio.server import Server, serve
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol

from fleet.adapters.net.listening import listen
from fleet.adapters.net.tls.certificate import ServerCertificate
from fleet.adapters.net.tls.listener import TlsAcceptor
from fleet.ground.errors import ConfigError
from fleet.ground.settings.tls import plain_host
from fleet.roles.gateway.port.connection_limits import ConnectionLimits
from fleet.roles.gateway.port.entrance import agree
from fleet.roles.gateway.port.limited_connection import LimitedConnection
from fleet.roles.gateway.settings import GatewaySettings
from fleet.wire.gateway import LARGEST_FRAME

_FRAMES_AHEAD = 0
"""Frames in a client's queue at which reading pauses. Each may be as large as a message, so only one waits, with the
frames in the same 4 KiB as its end."""
_BACKLOG = 1024


class Port:
    """The listening sockets; they are open after the construction.

    Args:
        settings: With the addresses.
        connection_limits: Of all connections of this gateway.
        certificate: The caller keeps it current; None for no TLS.

    Raises:
        ConfigError: An address is in use or not this machine's.
    """

    def __init__(
        self, settings: GatewaySettings, connection_limits: ConnectionLimits, certificate: ServerCertificate | None
    ) -> None:
        self._settings = settings
        self._connection_limits = connection_limits
        self._certificate = certificate
        self._plain = _listen(
            plain_host(settings.cloud_host, tls_only=settings.tls_only), settings.cloud_port, "CLOUD_PORT"
        )
        self.number: int = self._plain.getsockname()[1]
        self._tls: socket.socket | None = None
        self.tls_number: int | None = None
        if certificate is not None:
            try:
                self._tls = _listen(settings.cloud_host, settings.wss_port, "FLEET_WSS_PORT")
            except ConfigError:
                self._plain.close()
                raise
            self.tls_number = self._tls.getsockname()[1]

    @asynccontextmanager
    async def open(
        self,
        handle: Callable[[LimitedConnection], Awaitable[None]],
        answer: Callable[[LimitedConnection, Request], Awaitable[Response | None]],
    ) -> AsyncIterator[None]:
        """Accept connections inside the block; at its end close all of them with the code 1001.

        Args:
            handle: Serves a WebSocket.
            answer: Returns the response to a request that gets no WebSocket, else None.
        """
        # The library logs every connection, and every failed handshake with a traceback.
        logging.getLogger("websockets.server").setLevel(logging.CRITICAL)
        kind = LimitedConnection.of(self._connection_limits)
        server = serve(
            lambda one: handle(cast(LimitedConnection, one)),
            sock=self._plain,
            process_request=lambda one, request: answer(cast(LimitedConnection, one), request),
            select_subprotocol=lambda _, offered: agree(offered),
            compression=None,
            server_header=None,
            # `LimitedConnection` has this limit itself, because it counts the connections that it closes.
            open_timeout=None,
            max_size=LARGEST_FRAME,
            create_connection=kind,
            **self._pace,
        )
        async with server, self._open_tls(server, kind):
            yield

    @asynccontextmanager
    async def _open_tls(self, server: Server, kind: type[LimitedConnection]) -> AsyncIterator[None]:
        if self._tls is None or self._certificate is None:
            yield
            return

        def make() -> LimitedConnection:
            protocol = ServerProtocol(select_subprotocol=lambda _, offered: agree(offered), max_size=LARGEST_FRAME)
            return kind(protocol, server, **self._pace)

        async with asyncio.TaskGroup() as handshakes:
            seconds = self._connection_limits.limits.tls
            entry = TlsAcceptor(self._certificate.context, handshakes, self._connection_limits.counts, seconds=seconds)
            with entry.open(self._tls, make):
                yield

    @property
    def _pace(self) -> dict[str, Any]:
        return {
            "max_queue": _FRAMES_AHEAD,
            "ping_interval": self._settings.cloud_ping_interval,
            "ping_timeout": self._settings.cloud_ping_timeout,
            "close_timeout": self._connection_limits.limits.goodbye,
        }


def _listen(host: str, port: int, setting: str) -> socket.socket:
    try:
        return listen(host, port, _BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(f"port {port} is taken; stop what uses it or set {setting}") from error
        where = f"{host}:{port} ({error.strerror or error})"
        raise ConfigError(f"cannot listen on {where}; see CLOUD_HOST and {setting}") from error
