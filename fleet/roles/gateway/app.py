"""The gateway: it accepts connections, selects the dialect of each, and closes them when it stops."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from typing import Protocol

from websockets.frames import CloseCode
from websockets.http11 import Request, Response
from websockets.protocol import State

from fleet.adapters.net.tls.certificate import ServerCertificate
from fleet.core.proxies import site
from fleet.core.rates import Buckets, Rate
from fleet.ground.tasks import isolate
from fleet.roles.gateway.client import Client, ClientGone
from fleet.roles.gateway.conversation import converse
from fleet.roles.gateway.port.connection_limits import ClientLimits, ConnectionLimits
from fleet.roles.gateway.port.entrance import AccessCheck
from fleet.roles.gateway.port.http_answers import HttpAnswers
from fleet.roles.gateway.port.limited_connection import LimitedConnection
from fleet.roles.gateway.port.port import Port
from fleet.roles.gateway.resources import GatewayResources
from fleet.roles.gateway.turns.turns import GatewayTurns
from fleet.roles.gateway.voice.door import VoiceDoor
from fleet.wire.gateway import is_jsonrpc
from fleet.wire.json_text import parsing_cost
from fleet.wire.voice_websocket import is_voice_path

log = logging.getLogger(__name__)

COSTS_ONE = 8 * 1024
"""Bytes of `parsing_cost` that count as one more message: 1 MB counts as 129 messages of FLEET_RATE_GATEWAY."""

_DRAIN_STEP = 0.05
_LEAVING = "the server is leaving"
_LONGEST_PAUSE = 1.0


class Dialogue(Protocol):
    """A dialect on one connection."""

    @property
    def turns(self) -> GatewayTurns:
        """The client's questions; the gateway waits for their answers when it stops."""

    async def receive(self, frame: bytes) -> None:
        """Process a frame; raises `ClientGone` if the client has left."""

    async def refuse(self, frame: bytes) -> None:
        """Answer a frame beyond the rate limit with an error; raises `ClientGone` if the client has left."""


Opener = Callable[[Client], AbstractAsyncContextManager[Dialogue]]
"""Opens a client's dialogue in one dialect; inside the block the caller passes the frames to it."""


class Gateway:
    """Serves the LLM Gateway API; its ports are open after its construction.

    The first frame of a connection selects the dialect: with JSON-RPC, the client is a registrar.

    Args:
        resources: Shared by all connections.
        ping: Returns when Redis answers; raises `Unavailable`.
        registrar: Serves registrars; None to serve only the LLM Gateway API.
        voice: Serves voice clients; None to serve none.
        certificate: For TLS; the caller keeps it current.
        limits: Of each connection.

    Raises:
        ConfigError: An address is in use or not this machine's.
    """

    def __init__(
        self,
        resources: GatewayResources,
        ping: Callable[[], Awaitable[None]],
        registrar: Opener | None = None,
        voice: VoiceDoor | None = None,
        *,
        certificate: ServerCertificate | None = None,
        limits: ClientLimits | None = None,
    ) -> None:
        settings = resources.settings
        self._resources = resources
        self._registrar, self._voice = registrar, voice
        self._http = HttpAnswers(ping, lambda: self.draining)
        self._entrance = AccessCheck(settings)
        self._connections: set[LimitedConnection] = set()
        self._dialogues: dict[Dialogue, Client] = {}
        self.started = asyncio.Event()
        self.draining = False
        """Whether new clients are refused."""
        self.connection_limits = ConnectionLimits(limits or ClientLimits())
        self.ports = Port(settings, self.connection_limits, certificate)
        self.port = self.ports.number

    @property
    def connections(self) -> int:
        """Number of clients, without connections that are closing."""
        return sum(one.state is State.OPEN for one in self._connections)

    async def run(self) -> None:
        """Serve until cancelled; then close all connections with the code 1001."""
        async with self.ports.open(self._serve, self._answer_http):
            log.info("gateway listens", extra={"port": self.port, "tls_port": self.ports.tls_number})
            self.started.set()
            await asyncio.Event().wait()

    async def drain(self, seconds: float) -> None:
        """Refuse new clients, and close each connection (1001) when its questions are answered, within `seconds`.

        Each connection is closed separately, because there may be no moment at which no client has a question.
        """
        self.draining = True
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
                dismissed: set[Dialogue] = set()
                while self._dialogues:
                    for dialogue, peer in self._dialogues.items():
                        if dialogue not in dismissed and not dialogue.turns.busy:
                            dismissed.add(dialogue)
                            goodbye = peer.socket.close(CloseCode.GOING_AWAY, _LEAVING)
                            group.create_task(goodbye, name="goodbye to a client")
                    await asyncio.sleep(_DRAIN_STEP)
        if any(one.turns.busy for one in self._dialogues):
            log.warning("drain limit exceeded, some requests were not answered")

    async def _answer_http(self, connection: LimitedConnection, request: Request) -> Response | None:
        response = await self._http.answer(request)
        if response is None and self._voice and is_voice_path(request.path):
            return await self._entrance.admit_voice(connection, request, self._voice.take_ticket)
        return response or self._entrance.admit(connection, request)

    async def _serve(self, connection: LimitedConnection) -> None:
        if self.draining:
            await connection.close(CloseCode.GOING_AWAY, _LEAVING)
        elif full := self._full_for(connection):
            log.warning(full, extra={"address": connection.address})
            self.connection_limits.counts[full] += 1
            await connection.close(CloseCode.TRY_AGAIN_LATER, full)
        else:
            connection.become_client()
            self._connections.add(connection)
            try:
                await isolate("gateway connection", self._attend(Client(connection)))
            finally:
                self._connections.discard(connection)

    def _full_for(self, connection: LimitedConnection) -> str:
        """Return the reason why there is no place for a client; empty if there is one."""
        settings = self._resources.settings
        if self.connections >= settings.cloud_max_connections:
            return "too many connections"
        here = site(connection.address)
        most = self._entrance.share(connection, settings.cloud_max_connections)
        if sum(one.state is State.OPEN and site(one.address) == here for one in self._connections) >= most:
            return "too many connections of an address"
        return ""

    async def _attend(self, peer: Client) -> None:
        ticket = peer.socket.ticket
        if ticket and self._voice:
            await self._voice.serve(peer, ticket)
        else:
            await self._converse(peer)

    async def _converse(self, peer: Client) -> None:
        try:
            async with AsyncExitStack() as stack:
                conversation = await stack.enter_async_context(converse(peer, self._resources))
                begun = await self._await_first(peer)
                if not begun or self._registrar is None or not is_jsonrpc(begun[0]):
                    await self._hand_over(peer, conversation, begun)
                    return
            async with self._registrar(peer) as dialogue:
                await self._hand_over(peer, dialogue, begun)
        except ClientGone as gone:
            log.info("client left", extra={"reason": str(gone)})

    async def _await_first(self, peer: Client) -> list[bytes]:
        """Return a list with the client's first frame when it may be parsed; empty if the client has left.

        It is a list, so that `_hand_over_next` can remove the frame: a variable would keep its memory until the
        connection ends.
        """
        first = await peer.receive()
        if first is None:
            return []
        await self._resources.parsing.take(parsing_cost(first), site(peer.address))
        return [first]

    async def _hand_over(self, peer: Client, dialogue: Dialogue, begun: list[bytes]) -> None:
        """Pass the client's frames to its dialogue until it leaves: those in `begun`, then the next ones."""
        allowance = _Allowance(Rate.parse(self._resources.settings.rate_gateway))
        self._dialogues[dialogue] = peer
        try:
            more = True
            while more:
                more = await self._hand_over_next(peer, dialogue, begun, allowance)
        except ClientGone as gone:
            log.info("client left", extra={"reason": str(gone)})
        finally:
            del self._dialogues[dialogue]

    async def _hand_over_next(
        self, peer: Client, dialogue: Dialogue, begun: list[bytes], allowance: "_Allowance"
    ) -> bool:
        """Pass on the next frame, and let no variable keep it; return False if there is none."""
        frame = begun.pop() if begun else await peer.receive()
        if frame is None or not await self._may_go_on(peer):
            return False
        cost = parsing_cost(frame)
        wait = allowance.take(cost)
        await self._resources.parsing.take(cost, site(peer.address))
        if wait:
            self.connection_limits.counts["too many messages"] += 1
            await dialogue.refuse(frame)
            await _pause(peer, wait)
        else:
            await dialogue.receive(frame)
        return True

    async def _may_go_on(self, peer: Client) -> bool:
        if self._entrance.remembers(peer.socket):
            return True
        self.connection_limits.counts["revoked"] += 1
        await peer.socket.close(CloseCode.POLICY_VIOLATION, "the token was revoked")
        return False


class _Allowance:
    """The rate limit of one connection."""

    def __init__(self, rate: Rate) -> None:
        self._burst = rate.burst
        self._bucket = Buckets(rate, most=1)

    def take(self, cost: int) -> float:
        """Count a message; return 0 if it is allowed, else the seconds until it would be."""
        share = min(1 + cost // COSTS_ONE, self._burst)
        return self._bucket.take("", asyncio.get_running_loop().time(), share)


async def _pause(peer: Client, seconds: float) -> None:
    """Read nothing from a client for some time, so that a flood costs no more than allowed messages."""
    with suppress(TimeoutError):
        async with asyncio.timeout(min(seconds, _LONGEST_PAUSE)):
            await peer.socket.wait_closed()
