"""The LLM Gateway API on one connection."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import replace

from fleet.core.proxies import site
from fleet.core.shared_budget import BudgetShare
from fleet.ground.loop_budget import FRAME_BYTES
from fleet.ground.metrics import http as metrics
from fleet.ground.tasks import running
from fleet.roles.gateway.client import Client
from fleet.roles.gateway.client_session import ClientSession
from fleet.roles.gateway.failure import explain
from fleet.roles.gateway.resources import GatewayResources
from fleet.roles.gateway.turns.callbacks import Callbacks
from fleet.roles.gateway.turns.client_tools import ClientTools
from fleet.roles.gateway.turns.text_budget import TEXTS_OF_CONNECTION, TextBudget
from fleet.roles.gateway.turns.turn import Choices, GatewayTurn, Question
from fleet.roles.gateway.turns.turns import GatewayTurns
from fleet.wire.gateway import (
    Configure,
    EndSession,
    Ping,
    RegisterTools,
    Request,
    RequestRefused,
    StartSession,
    TextInput,
    ToolAnswer,
    receive,
)
from fleet.wire.gateway_messages import PongMessage, Status
from fleet.wire.gateway_tools import BadTool, unpack_tool
from fleet.wire.json_text import parsing_cost
from fleet.wire.mcp import ToolSpec

_EXPIRED = RequestRefused("SESSION_ERROR", "Session not found", "There is no such session, or it has expired")
_TOO_FAST = RequestRefused(
    "INTERNAL_ERROR", "Too many requests", "Too many messages in this time; this one was not taken"
)
_NO_CALL = RequestRefused("INVALID_MESSAGE", "Invalid call_id", "No tool call of this id waits for a result")
_NO_TOOLS = RequestRefused("TOOL_REGISTRATION_FAILED", "Client tools are disabled", "CLIENT_TOOLS_ENABLED is false")
_ENDED = RequestRefused("SESSION_ERROR", "Session ended", "The session was ended before the request was answered")


class Conversation:
    """One client of the API.

    Args:
        peer: The client.
        resources: Shared by all connections.
        tools: The share of the client's tools in the budget of all connections.
        texts: Counts the texts that are not answered yet.
    """

    def __init__(self, peer: Client, resources: GatewayResources, tools: BudgetShare, texts: TextBudget) -> None:
        settings = resources.settings
        self._peer = peer
        self._resources = resources
        self._session = ClientSession(resources.sessions, peer.address)
        self._tools = ClientTools(settings.client_tools_max_count, tools)
        self._callbacks = Callbacks(peer, settings.client_tool_timeout, settings.client_tool_result_queue_size)
        self._choices = Choices(None, None, settings.llm_enable_context)
        self._context_chosen = False
        self.turns = GatewayTurns(self._answer, texts)

    async def greet(self) -> None:
        """Begin a session and send its id to the client.

        Raises:
            ClientGone: The client has left.
        """
        await self._session.begin()
        await self._send_session()

    async def receive(self, frame: bytes) -> None:
        """Process a frame; questions are only queued.

        Raises:
            ClientGone: The client has left.
        """
        request = receive(frame)
        refused = request if isinstance(request, RequestRefused) else await self._take(request)
        if refused is not None:
            await self._refuse(refused)

    async def refuse(self, _: bytes) -> None:
        """Answer a frame beyond the rate limit with an error.

        Raises:
            ClientGone: The client has left.
        """
        await self._refuse(_TOO_FAST)

    async def _refuse(self, refused: RequestRefused) -> None:
        metrics.gateway_refusals.add(refused.code.lower())
        await self._peer.send(explain(refused))

    async def _take(self, request: Request) -> RequestRefused | None:
        match request:
            case TextInput():
                return await self._ask(request)
            case Configure():
                self._configure(request)
            case StartSession():
                return await self._start(request.session)
            case EndSession():
                await self._end()
            case RegisterTools():
                return await self._register(request)
            case ToolAnswer():
                return None if self._callbacks.settle(request) else _NO_CALL
            case Ping():
                await self._peer.send(PongMessage())
        return None

    async def _ask(self, request: TextInput) -> RequestRefused | None:
        if request.session and request.session != self._session.id:
            if refused := await self._session.resume(request.session):
                return refused
        elif not await self._session.lives():
            if request.session:
                return _EXPIRED
            await self._session.begin()
            await self._send_session()
        # A resumed session continues with its history, unless the client chose otherwise (4.1 and 9.6 against 4.2).
        context = self._choices.context if self._context_chosen else self._choices.context or self._session.resumed
        found = None if self.turns.busy else self._session.found
        question = Question(request.text, self._session.id, replace(self._choices, context=context), found)
        full = self.turns.add(question)
        return RequestRefused("INTERNAL_ERROR", "Too many requests", full) if full else None

    def _configure(self, request: Configure) -> None:
        now, most = self._choices, self._resources.terms.max_tokens
        self._context_chosen = self._context_chosen or request.enable_context is not None
        self._choices = Choices(
            now.temperature if request.temperature is None else request.temperature,
            now.max_tokens if request.max_tokens is None else min(request.max_tokens, most),
            now.context if request.enable_context is None else request.enable_context,
            now.stream if request.stream is None else request.stream,
        )

    async def _start(self, session: str) -> RequestRefused | None:
        if not session:
            await self._session.begin()
        elif refused := await self._session.resume(session):
            return refused
        await self._send_session()
        return None

    async def _end(self) -> None:
        for _ in range(self.turns.drop()):
            await self._peer.send(explain(_ENDED))
        session = self._session.id
        await self._session.end()
        await self._peer.send(Status(status="idle", data={"session_id": session}))

    async def _register(self, request: RegisterTools) -> RequestRefused | None:
        if not self._resources.settings.client_tools_enabled:
            return _NO_TOOLS
        # Registered together after all are read, so that no turn begins with a part of them.
        await self._peer.send(self._tools.register(await self._read(request.tools)))
        return None

    async def _read(self, packed: Sequence[str | BadTool]) -> list[ToolSpec | BadTool]:
        """Read tools in slices; messages of other clients are processed between them."""
        read: list[ToolSpec | BadTool] = []
        left = FRAME_BYTES  # the frame itself has waited for the first slice
        for tool in packed:
            if isinstance(tool, BadTool):
                read.append(tool)
                continue
            cost = parsing_cost(tool)
            if read and cost > left:
                await self._resources.parsing.take(FRAME_BYTES, site(self._peer.address))
                left = FRAME_BYTES
            left -= cost
            read.append(unpack_tool(tool))
        return read

    async def _answer(self, question: Question) -> None:
        tools, consent = self._tools.tools, self.turns.consent
        await GatewayTurn(self._resources, self._peer, self._callbacks, tools, question, consent).run()

    async def _send_session(self) -> None:
        await self._peer.send(Status(status="connected", data={"session_id": self._session.id}))


@asynccontextmanager
async def converse(peer: Client, resources: GatewayResources) -> AsyncIterator[Conversation]:
    """Serve a client inside the block; the caller passes its frames to the conversation."""
    async with AsyncExitStack() as stack:
        tools = stack.enter_context(closing(BudgetShare(resources.tool_budget)))
        texts = stack.enter_context(closing(BudgetShare(resources.text_budget, TEXTS_OF_CONNECTION)))
        conversation = Conversation(peer, resources, tools, TextBudget(texts))
        await conversation.greet()
        await stack.enter_async_context(running("gateway turns", conversation.turns.run))
        yield conversation
