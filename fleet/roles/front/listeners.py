"""The listening sockets of the front: one without TLS, and optionally one with TLS."""

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass

from fleet.adapters.net.listening import listen
from fleet.adapters.net.tls.certificate import ServerCertificate
from fleet.adapters.net.tls.listener import TlsAcceptor
from fleet.ground.errors import ConfigError
from fleet.roles.front.limits import FrontLimits

_QUEUE = 1024


@dataclass(frozen=True, slots=True)
class TlsBinding:
    """A listener with TLS; port 0 takes a free one. The caller renews `certificate`."""

    host: str
    port: int
    certificate: ServerCertificate


class Listeners:
    """The listeners of a front.

    Args:
        plain: Host and port without TLS.
        secure: The listener with TLS, if there is one.
        limits: `connect` limits the time of a handshake, `unauthenticated` the number of concurrent ones.
        counts: Count failed handshakes.
    """

    def __init__(
        self, plain: tuple[str, int], secure: TlsBinding | None, limits: FrontLimits, counts: Counter[str]
    ) -> None:
        self._host, self.port = plain
        self._secure = secure
        self._limits = limits
        self._counts = counts
        self.tls_port = secure.port if secure else None

    @asynccontextmanager
    async def open(self, group: asyncio.TaskGroup, accept: Callable[[], asyncio.Protocol]) -> AsyncIterator[None]:
        """Listen during the block.

        Args:
            group: Owns the handshakes.
            accept: Makes the protocol of a connection; with TLS it is called after the handshake.

        Raises:
            ConfigError: It cannot listen on an address.
        """
        with ExitStack() as stack:
            listener = _listen(self._host, self.port)
            self.port = listener.getsockname()[1]
            stack.callback(listener.close)
            if self._secure is not None:
                secure = _listen(self._secure.host, self._secure.port)
                self.tls_port = secure.getsockname()[1]
                stack.enter_context(self._entry(self._secure, group).open(secure, accept))
            server = await asyncio.get_running_loop().create_server(accept, sock=listener, backlog=_QUEUE)
            stack.callback(server.close)
            yield

    def _entry(self, secure: TlsBinding, group: asyncio.TaskGroup) -> TlsAcceptor:
        context, limits = secure.certificate.context, self._limits
        return TlsAcceptor(context, group, self._counts, seconds=limits.connect, most=limits.unauthenticated)


def _listen(host: str, port: int) -> socket.socket:
    try:
        return listen(host, port, _QUEUE)
    except OSError as error:
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
