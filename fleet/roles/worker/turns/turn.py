"""One turn: a user's utterance until its answer is written."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from fleet.adapters.redis.sessions.conversations import Begun, Context, StoredJournal
from fleet.adapters.redis.sessions.replies import Reply, ReplyState
from fleet.core import agent
from fleet.core.agent import Progress
from fleet.core.history import since_user
from fleet.core.local_time import own_offset
from fleet.core.ports import USUAL, Llm, LlmEvent, LlmOptions, Message, ToolOffer
from fleet.core.prompt import DEVICE_PROMPT, local_now, write_prompt
from fleet.core.reports import tell
from fleet.core.server_tools import Caller, Persona
from fleet.core.text.phrases import LANGUAGES, Phrase, phrase
from fleet.core.tool_kinds import kind_of
from fleet.core.toolbox import Toolbox
from fleet.ground.errors import Fenced, Overloaded, ProviderError, Unavailable
from fleet.ground.metrics import turns as timed
from fleet.ground.tasks import isolate
from fleet.roles.worker.calls.device_calls import CallTerms, DeviceCalls, Outcome
from fleet.roles.worker.calls.device_tools import DeviceTools
from fleet.roles.worker.calls.server_calls import ServerCalls
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.sessions.camera import introduce
from fleet.roles.worker.sessions.discovery import new_number
from fleet.roles.worker.turns.deadline import TurnDeadline
from fleet.roles.worker.turns.journal_writer import JournalWriter
from fleet.roles.worker.turns.speech import AnswerSpeech
from fleet.wire import dialects
from fleet.wire.edge_messages import UtteranceEvent
from fleet.wire.messages import CallToolCommand, DeviceCommand, TranscriptCommand

log = logging.getLogger(__name__)

_CUT_SECONDS = 2.0


class _Watched:
    """The model, with a line in the log for each request."""

    def __init__(self, llm: Llm) -> None:
        self._llm = llm

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolOffer], options: LlmOptions = USUAL
    ) -> AsyncGenerator[LlmEvent, None]:
        log.debug("model asked", extra={"messages": len(messages), "tools": len(tools)})
        return self._llm.stream(messages, tools, options)


class WorkerTurn:
    """Answers one utterance, from its beginning or from where another worker left it.

    Args:
        resources: What it works with.
        calls: Calls the device's tools.
        shard: The device's.
        begun: The device's session, and how far the turn had got.
        heard: What the user said.
    """

    def __init__(
        self, resources: WorkerResources, calls: DeviceCalls, shard: Shard, begun: Begun, heard: UtteranceEvent
    ) -> None:
        self._resources = resources
        self._calls = calls
        self._shard = shard
        self._session = begun.session
        self._heard = heard
        self._again = begun.journal is not None
        self._late = begun.late
        self._journal = begun.journal or StoredJournal(heard.turn, "running", (Message("user", heard.text),), 0)
        handed = self._journal.sentences
        self._speech = AnswerSpeech(shard, resources.mailboxes, begun.session, heard, handed)
        self._record = JournalWriter(resources.conversations, shard.owner, heard.device, self._journal, self._speech)
        self._patience = TurnDeadline(resources.settings.turn_seconds, self._speech)

    async def run(self) -> None:
        """Answer, and tell the edge that the answer has ended.

        Raises:
            Fenced: Another worker goes on with the turn, or a newer one has begun.
            Unavailable: Redis is away; the turn can be taken up again.
        """
        if self._again:
            log.info("turn goes on", extra={"state": self._journal.state, "sentences": self._journal.sentences})
        else:
            log.info("turn begins", extra={"pii": {"text": self._heard.text}})
            self._show()
        if self._journal.state == "cut":
            await self._speech.leave()
            await self._reply("interrupted")
            return
        before = await self._record.replay() if self._again else Progress()
        if self._journal.state == "running":
            failure = await self._answer(before)
            if failure is not None:
                await self._apologise(failure)
            await self._record.keep()
        await self._speech.end()
        await self._reply("failed" if self._record.apologised else "answered")
        log.info("turn written", extra={"sentences": self._speech.handed})

    async def cut(self) -> None:
        """End a turn that was cancelled: it is remembered as far as it got, and the edge waits no more.

        Raises:
            Fenced: Another worker goes on with the turn.
            Unavailable: Redis is away.
            TimeoutError: It took too long.
        """
        async with asyncio.timeout(_CUT_SECONDS):
            await self._record.cut()
            await self._speech.leave()
            await self._reply("interrupted")

    def _show(self) -> None:
        """Let the device show what was typed for it, as it shows what it hears."""
        if self._heard.typed and self._session.edge:
            with suppress(Unavailable, Overloaded):
                self._publish(TranscriptCommand(self._session.id, self._heard.text))

    async def _reply(self, state: ReplyState) -> None:
        """Count how it ended, and tell whoever typed."""
        timed.outcomes.add(state)
        if self._heard.typed:
            reply, owner = Reply(state, self._speech.messages.whole), self._shard.owner
            await self._resources.replies.write(owner, self._session.device, self._heard.turn, reply)

    async def _answer(self, before: Progress) -> Phrase | None:
        """Let the model answer; return what to say when it could not."""
        if self._late:
            log.warning("turn comes too late")
            return "failed"
        failure = await isolate("answer", self._ask_in_time(before), (TimeoutError, ProviderError, Fenced, Unavailable))
        match failure:
            case None:
                return None
            case TimeoutError():
                log.warning("turn took too long", extra={"limit": self._resources.settings.turn_seconds})
                return "too_long"
            case ProviderError():
                log.warning("turn failed", extra={"reason": str(failure)})
            case Fenced() | Unavailable():
                raise failure
        return "failed"

    async def _ask_in_time(self, before: Progress) -> None:
        async with self._patience.limit():
            await self._ask(before)

    async def _ask(self, before: Progress) -> None:
        settings, mac = self._resources.settings, self._session.device
        context = await self._resources.conversations.context(mac, settings.history_messages)
        self._speech.speak(context.persona.language)
        toolbox = Toolbox(context.tools)
        if toolbox.left_out:
            log.warning("too many tools to offer", extra={"left_out": toolbox.left_out})
        offset = own_offset(context.timezone, settings.timezone_offset, datetime.now(UTC))
        asked = (
            Message("system", self._prompt(context, offset)),
            *since_user(context.history),
            Message("user", self._heard.text),
        )
        own = DeviceTools(toolbox, self._send, self._session, self._heard.turn, self._patience, settings.tool_seconds)
        caller = Caller(self._session.id or mac, timezone_offset=offset, persona=context.persona)
        tools = self._beside(own, caller, before)
        model = _Watched(self._resources.llm)
        added = await agent.run_turn(
            asked, model, tools, self._record.say, self._record, before, self._speech.messages.think
        )
        if not any(message.text.strip() for message in added if message.role == "assistant"):
            raise ProviderError("the model wrote no answer", retryable=False)

    async def _send(self, order: CallToolCommand, terms: CallTerms) -> Outcome:
        mac = self._session.device
        if dialects.find(self._session.dialect).capabilities.camera and kind_of(order.name).camera:
            fresh = await introduce(self._resources, mac, new_number())
            # The token that the device has may be over.
            if fresh.vision_url:
                self._publish(fresh)
        return await self._calls.call(self._shard, mac, order, terms)

    def _publish(self, command: DeviceCommand) -> None:
        self._shard.publish(self._session.device, command, self._session.dialect)

    def _beside(self, own: DeviceTools, caller: Caller, before: Progress) -> agent.AgentTools:
        """Return the device's tools, with the server's if there are any."""
        tools = self._resources.server_tools
        return own if tools is None else ServerCalls(tools, self._change, caller).beside(own, before)

    async def _apologise(self, failure: Phrase) -> None:
        """Apologise in the language that was set, else in the one that was heard, else in the server's."""
        wanted = (self._speech.heard.language, self._heard.language, self._resources.settings.language)
        language = next((one for one in wanted if one in LANGUAGES), "en")
        self._speech.speak(language)
        await self._record.apologise(phrase(failure, language))

    async def _change(self, persona: Persona) -> None:
        """Keep a new persona, and speak in its language."""
        await self._resources.personas.keep(self._shard.owner, self._session.device, persona)
        self._speech.speak(persona.language)

    def _prompt(self, context: Context, offset: int) -> str:
        tools = self._resources.server_tools
        return write_prompt(
            self._resources.settings.prompt or DEVICE_PROMPT,
            local_now(offset),
            language=self._heard.language,
            persona=tools.introduce(context.persona) if tools else "",
            reports=tell(context.reports),
        )
