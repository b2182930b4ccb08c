"""Where devices connect: a listener without TLS, and one with it."""

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass

from fleet.adapters.net.tls.certificate import ServerCertificate
from fleet.adapters.net.tls.listener import TlsAcceptor
from fleet.ground.errors import ConfigError
from fleet.roles.front.limits import FrontLimits

_QUEUE = 1024


@dataclass(frozen=True, slots=True)
class Secure:
    """A listener with TLS; port 0 takes a free one. `certificate` is followed by who made it."""

    host: str
    port: int
    certificate: ServerCertificate


class Listeners:
    """The listeners of a front.

    Args:
        plain: Host and port of the one without TLS.
        secure: The one with it, if there is to be one.
        limits: `greeting` bounds a handshake, `strangers` how many there are at a time.
        counts: Counts handshakes that fail.
    """

    def __init__(
        self, plain: tuple[str, int], secure: Secure | None, limits: FrontLimits, counts: Counter[str]
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
            accept: Makes the protocol of a connection; with TLS not before its handshake is done.

        Raises:
            ConfigError: An address cannot be listened on.
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

    def _entry(self, secure: Secure, group: asyncio.TaskGroup) -> TlsAcceptor:
        context, limits = secure.certificate.context, self._limits
        return TlsAcceptor(context, group, self._counts, seconds=limits.greeting, most=limits.strangers)


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), backlog=_QUEUE)
    except OSError as error:
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
