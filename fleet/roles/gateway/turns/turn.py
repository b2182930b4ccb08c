"""One `text_input` until its only answer, an `llm_response` or an `error`."""

import asyncio
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from fleet.adapters.redis.sessions.gateway_sessions import GatewaySession
from fleet.core import agent as loop
from fleet.core.agent_settings import chosen_persona, llm_options, override, persona_of
from fleet.core.history import since_user
from fleet.core.ports import LlmOptions, Message, TokenUsage
from fleet.core.prompt import CLIENT_PROMPT, local_now, write_prompt
from fleet.core.server_tools import Caller
from fleet.core.situation import describe_situation, situate
from fleet.core.tool_policy import read_policy
from fleet.ground.errors import ProviderError, ProviderTimeout
from fleet.ground.local_time import own_offset
from fleet.ground.metrics import turns as timed
from fleet.ground.tasks import isolate
from fleet.ground.tracing import spans
from fleet.roles.gateway.client import Client, ClientGone
from fleet.roles.gateway.client_session import STORE_SECONDS, SessionNotes
from fleet.roles.gateway.failure import RequestFailed
from fleet.roles.gateway.resources import GatewayResources
from fleet.roles.gateway.turns.callbacks import Callbacks
from fleet.roles.gateway.turns.consent import ClientConsent
from fleet.roles.gateway.turns.spoken import SpokenText
from fleet.roles.gateway.turns.toolset import TurnToolset
from fleet.roles.gateway.turns.turn_tools import TurnTools
from fleet.wire.agents import NO_AGENT
from fleet.wire.gateway_messages import PROCESSING, Failure, LlmResponse, Status
from fleet.wire.mcp import ToolSpec

log = logging.getLogger(__name__)

_NO_TOOLS: tuple[()] = ()
_ADDRESS = re.compile(r"\S*://\S+ ")


@dataclass(frozen=True, slots=True)
class Choices:
    """The options that a client has configured; None leaves one to the agent, or else to the settings."""

    temperature: float | None
    max_tokens: int | None
    context: bool
    stream: bool = False


@dataclass(slots=True, eq=False)
class Question:
    """An accepted `text_input`, with the options and the session of that moment."""

    text: str
    session: str
    choices: Choices
    found: GatewaySession | None = None
    """The session as it was when the question came, unless an earlier question may change it."""
    answered: bool = False
    """Whether its answer is being sent."""
    reports: str = ""
    """What a registrar reported since its last question, for the model (`fleet.core.reports`)."""
    at: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    """When it came, on the loop's clock."""


class GatewayTurn:
    """Answers one question.

    Args:
        resources: Shared by all connections.
        peer: The client.
        callbacks: Call the client's tools.
        tools: The client's tools.
        question: The question.
        consent: Of the connection.
    """

    def __init__(
        self,
        resources: GatewayResources,
        peer: Client,
        callbacks: Callbacks,
        tools: Sequence[ToolSpec],
        question: Question,
        consent: ClientConsent,
    ) -> None:
        self._resources = resources
        self._peer = peer
        self._callbacks = callbacks
        self._client_tools = tools
        self._question = question
        self._client_consent = consent
        self._consent = consent.begin(question.session, question.text, question.at)
        self._notes = SessionNotes(resources.sessions, question.session, question.found)
        self._document = NO_AGENT.document
        self._spoken = SpokenText()
        self.usage = TokenUsage()
        """The turn's tokens so far."""
        self._answer: LlmResponse | Failure = Failure(
            code="INTERNAL_ERROR", message="Internal error", details="The server failed; its log says why"
        )

    async def run(self) -> None:
        """Answer the question.

        Raises:
            ClientGone: The client has left.
        """
        await self._peer.send(Status(status="processing", data={"message": PROCESSING}))
        with spans.span("turn", {"fleet.session": self._question.session}):
            await isolate("gateway turn", self._try())
            tokens = self.usage.named()
            spans.current().set({f"gen_ai.usage.{name}": count for name, count in tokens.items()})
        log.info("tokens used", extra=tokens)
        self._question.answered = True
        # Sent before the answer: a message after it could be taken for the answer to the client's next request.
        await self._peer.send(Status(status="idle", data={"session_id": self._question.session}))
        await self._peer.send(self._answer)
        self._client_consent.note_sent(asyncio.get_running_loop().time())
        timed.gateway.add("answered" if isinstance(self._answer, LlmResponse) else str(self._answer.code).lower())

    async def _try(self) -> None:
        try:
            self._answer = await self._ask()
        except RequestFailed as failed:
            log.warning("turn failed", extra={"code": failed.failure.code, "pii": failed.failure.details})
            self._answer = failed.failure
        except ProviderError as error:
            log.warning("turn failed", extra={"reason": str(error)})
            self._answer = _explain(error)
        except ClientGone as gone:
            log.info("turn ended: its client is gone", extra={"reason": str(gone)})

    async def _ask(self) -> LlmResponse:
        resources, question = self._resources, self._question
        async with asyncio.TaskGroup() as group:
            found = group.create_task(resources.agents.of_site(STORE_SECONDS), name="agent")
            session = await self._notes.read()
        agent = found.result()
        self._document = agent.document
        tools = self._open_tools(session)
        choices = question.choices
        context = since_user(self._history(session)) if choices.context else ()
        reports = f"{self._consent.note}\n{question.reports}".strip()
        situation = describe_situation(local_now(self._offset()), reports=reports)
        asked = (Message("system", self._prompt(session)), *situate(context, question.text, situation))
        added = await loop.run_turn(
            asked,
            await resources.models.find(agent),
            tools,
            _Output(self, tools),
            self._consent.before,
            options=self._options(),
        )
        if not any(message.text.strip() for message in added if message.role == "assistant"):
            raise RequestFailed("LLM_ERROR", "Failed to process request", "The model gave no answer")
        await self._notes.remember(question.text, self._spoken.text)
        return LlmResponse(content=self._spoken.text, tool_calls=tools.done)

    def _open_tools(self, session: GatewaySession) -> TurnTools:
        settings, server = override(self._resources.settings, self._document), self._resources.tools
        self._consent.language = session.persona.language
        gate = self._consent.gate(read_policy(settings.tool_policy))
        toolset = TurnToolset(self._client_tools, server.offers if settings.mcp_enabled else _NO_TOOLS, gate)
        if toolset.left_out:
            log.warning("too many tools to offer", extra={"left_out": toolset.left_out})
        persona = persona_of(self._document, session.persona)
        caller = Caller(session.id, self._peer.address, self._offset(), persona)
        tools = TurnTools(toolset, server, self._callbacks, self._peer, caller, settings.tool_seconds)
        tools.on_persona = lambda chosen: self._notes.change(chosen_persona(self._document, chosen))
        tools.gate = gate
        return tools

    def _prompt(self, session: GatewaySession) -> str:
        settings = override(self._resources.settings, self._document)
        introduction = self._resources.tools.introduce(persona_of(self._document, session.persona))
        return write_prompt(settings.prompt or CLIENT_PROMPT, persona=introduction)

    def _history(self, session: GatewaySession) -> Sequence[Message]:
        most = self._document.history_messages
        return session.history if most is None else session.history[len(session.history) - most :] if most else ()

    def _options(self) -> LlmOptions:
        """Return what the client chose, else the agent, else the settings."""
        client, agent, terms = self._question.choices, llm_options(self._document), self._resources.terms
        temperature, longest = (
            next(one for one in options if one is not None)
            for options in (
                (client.temperature, agent.temperature, terms.temperature),
                (client.max_tokens, agent.max_tokens, terms.max_tokens),
            )
        )
        return LlmOptions(temperature, int(longest))

    def _offset(self) -> int:
        """Return how many minutes east of UTC the clients are taken to be."""
        return own_offset("", self._resources.settings.timezone, datetime.now(UTC))

    async def say(self, text: str) -> None:
        """Take the next piece of the model's text."""
        await self._stream(self._spoken.feed(text))

    async def end_message(self) -> None:
        """Send the rest of a message of the model."""
        await self._stream(self._spoken.flush())

    async def _stream(self, pieces: Sequence[str]) -> None:
        if self._question.choices.stream:
            for piece in pieces:
                await self._peer.send(LlmResponse(content=piece, is_final=False))


class _Output:
    """Sends the model's text to the client, and ends the turn between two steps if a call failed."""

    def __init__(self, turn: GatewayTurn, tools: TurnTools) -> None:
        self._turn = turn
        self._tools = tools

    async def say(self, text: str) -> None:
        await self._turn.say(text)

    async def think(self, text: str) -> None:
        """Drop the thoughts; the API has no message for them."""

    def spend(self, usage: TokenUsage) -> None:
        """Add the tokens of one request."""
        self._turn.usage += usage

    async def record(self, messages: Sequence[Message]) -> None:
        """Check the calls of the last step, and prepare those of the next one.

        Raises:
            RequestFailed: A call ends the turn.
            ClientGone: The client has left.
        """
        self._tools.check()
        last = messages[-1]
        if last.role == "assistant":
            await self._turn.end_message()
            if last.calls:
                self._tools.begin(last)


def _explain(error: ProviderError) -> Failure:
    """Return the error message for a failure of the model, without the address of the endpoint."""
    details = _ADDRESS.sub("", str(error))
    if isinstance(error, ProviderTimeout):
        return Failure(code="TIMEOUT", message="LLM request timeout", details=details)
    return Failure(code="LLM_ERROR", message="Failed to process request", details=details)
