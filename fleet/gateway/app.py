"""The gateway: its port, its connections, its end."""

import asyncio
import errno
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Protocol

from websockets.asyncio.server import ServerConnection, serve
from websockets.frames import CloseCode
from websockets.http11 import Request, Response
from websockets.protocol import State

from fleet.errors import ConfigError
from fleet.gateway.conversation import converse
from fleet.gateway.http_answers import HttpAnswers
from fleet.gateway.peer import Gone, Peer
from fleet.gateway.resources import Resources
from fleet.gateway.turns import Turns
from fleet.tasks import isolate
from fleet.wire.gateway import LARGEST_FRAME, is_jsonrpc

log = logging.getLogger(__name__)

_CLOSE_SECONDS = 5.0
_FRAMES_AHEAD = 4
"""Frames of a client that are read before they are taken; each may be as large as a message."""
_DRAIN_STEP = 0.05
_BACKLOG = 1024


class Dialogue(Protocol):
    """A dialect on one connection."""

    @property
    def turns(self) -> Turns:
        """The client's questions; the gateway's end waits for them."""

    async def receive(self, frame: str | bytes) -> None:
        """Take a frame; raises `Gone` when the client is."""


Opener = Callable[[Peer], AbstractAsyncContextManager[Dialogue]]
"""Serves a client in a dialect beside the block, which hands over the frames."""


class Gateway:
    """Serves the LLM Gateway API; listens from its construction on.

    A connection's first frame decides its dialect: JSON-RPC is another's, if there is one.

    Args:
        resources: What all connections share.
        ping: Returns when Redis answers; raises `Unavailable`.
        registrar: Serves those who speak JSON-RPC.

    Raises:
        ConfigError: The address is in use or not this machine's.
    """

    def __init__(
        self, resources: Resources, ping: Callable[[], Awaitable[None]], registrar: Opener | None = None
    ) -> None:
        settings = resources.settings
        self._resources = resources
        self._registrar = registrar
        self._http = HttpAnswers(ping, lambda: self.draining)
        self._most = settings.cloud_max_connections
        self._connections: set[ServerConnection] = set()
        self._dialogues: set[Dialogue] = set()
        self.started = asyncio.Event()
        self.draining = False
        """Whether new clients are turned away."""
        self._socket = _listen(settings.plain_host(settings.cloud_host), settings.cloud_port)
        self.port: int = self._socket.getsockname()[1]

    @property
    def connections(self) -> int:
        """Clients; one that has said goodbye counts no more, though its connection still ends."""
        return sum(one.state is State.OPEN for one in self._connections)

    async def run(self) -> None:
        """Serve until cancelled; clients are told then that the server goes away (1001)."""
        settings = self._resources.settings
        # It tells of every connection and every faulty handshake, with tracebacks.
        logging.getLogger("websockets.server").setLevel(logging.CRITICAL)
        async with serve(
            self._serve,
            sock=self._socket,
            process_request=self._answer_http,
            compression=None,
            server_header=None,
            max_size=LARGEST_FRAME,
            max_queue=_FRAMES_AHEAD,
            ping_interval=settings.cloud_ping_interval,
            ping_timeout=settings.cloud_ping_timeout,
            close_timeout=_CLOSE_SECONDS,
        ):
            log.info("gateway listens", extra={"port": self.port})
            self.started.set()
            await asyncio.Event().wait()

    async def drain(self, seconds: float) -> None:
        """Take no new clients, and wait until all questions are answered, but not longer than this."""
        self.draining = True
        try:
            async with asyncio.timeout(seconds):
                while any(one.turns.busy for one in self._dialogues):  # noqa: ASYNC110 - a state of many parts
                    await asyncio.sleep(_DRAIN_STEP)
        except TimeoutError:
            log.warning("left before everything was answered")

    async def _answer_http(self, _: ServerConnection, request: Request) -> Response | None:
        return await self._http.answer(request)

    async def _serve(self, connection: ServerConnection) -> None:
        if self.draining:
            await connection.close(CloseCode.GOING_AWAY, "the server is leaving")
            return
        if self.connections >= self._most:
            log.warning("too many connections", extra={"limit": self._most})
            await connection.close(CloseCode.TRY_AGAIN_LATER, "too many connections")
            return
        self._connections.add(connection)
        try:
            await isolate("gateway connection", self._converse(Peer(connection)))
        finally:
            self._connections.discard(connection)

    async def _converse(self, peer: Peer) -> None:
        try:
            async with AsyncExitStack() as stack:
                conversation = await stack.enter_async_context(converse(peer, self._resources))
                first = await peer.receive()
                if first is None or self._registrar is None or not is_jsonrpc(first):
                    await self._hand_over(peer, conversation, first)
                    return
            async with self._registrar(peer) as dialogue:
                await self._hand_over(peer, dialogue, first)
        except Gone as gone:
            log.info("client left", extra={"reason": str(gone)})

    async def _hand_over(self, peer: Peer, dialogue: Dialogue, frame: str | bytes | None) -> None:
        """Hand over a client's frames until it leaves."""
        self._dialogues.add(dialogue)
        try:
            while frame is not None:
                await dialogue.receive(frame)
                frame = await peer.receive()
        except Gone as gone:
            log.info("client left", extra={"reason": str(gone)})
        finally:
            self._dialogues.discard(dialogue)


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), backlog=_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(f"port {port} is taken; stop what uses it or set CLOUD_PORT") from error
        where = f"{host}:{port} ({error.strerror or error})"
        raise ConfigError(f"cannot listen on {where}; see CLOUD_HOST and CLOUD_PORT") from error
