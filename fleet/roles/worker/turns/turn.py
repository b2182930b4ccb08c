"""One turn: a user's utterance until its answer is written."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

from fleet.adapters.redis.sessions.conversations import Begun, Context, StoredJournal
from fleet.adapters.redis.sessions.replies import Reply, ReplyState
from fleet.core import agent
from fleet.core.agent import Progress
from fleet.core.history import since_user
from fleet.core.local_time import own_offset
from fleet.core.ports import Message
from fleet.core.prompt import DEVICE_PROMPT, local_now, write_prompt
from fleet.core.reports import describe
from fleet.core.server_tools import Caller, Persona
from fleet.core.text.phrases import LANGUAGES, Phrase, phrase
from fleet.core.toolbox import Toolbox
from fleet.ground.errors import Fenced, Overloaded, ProviderError, Unavailable
from fleet.ground.metrics import turns as timed
from fleet.ground.tasks import isolate
from fleet.roles.worker.calls.device_calls import DeviceCalls
from fleet.roles.worker.calls.device_tools import DeviceLink, DeviceTools
from fleet.roles.worker.calls.server_calls import ServerCalls
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.turns.deadline import TurnDeadline
from fleet.roles.worker.turns.journal_writer import JournalWriter
from fleet.roles.worker.turns.speech import AnswerSpeech
from fleet.wire.edge_messages import UtteranceEvent
from fleet.wire.messages import DeviceCommand, TranscriptCommand

log = logging.getLogger(__name__)

_CUT_SECONDS = 2.0
_EXPECTED = (TimeoutError, ProviderError, Fenced, Unavailable)
"""Failures of an answer that are no crash."""


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
        self._speech = AnswerSpeech(shard, resources.inboxes, begun.session, heard, handed)
        self._writer = JournalWriter(resources.conversations, shard.owner, heard.device, self._journal, self._speech)
        self._deadline = TurnDeadline(resources.settings.turn_seconds, self._speech)

    async def run(self) -> None:
        """Answer, and let the edge know that the answer has ended.

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
        before = await self._writer.replay() if self._again else Progress()
        if self._journal.state == "running":
            if self._late:
                log.warning("turn comes too late")
                failure: Phrase | None = "failed"
            else:
                failure = self._apology_for(await isolate("answer", self._ask(before), _EXPECTED))
            if failure is not None:
                await self._apologise(failure)
            await self._writer.keep()
        await self._speech.end()
        await self._reply("failed" if self._writer.apologised else "answered")
        log.info("turn written", extra={"sentences": self._speech.handed})

    async def cut(self) -> None:
        """End a turn that was cancelled: it is remembered as far as it got, and the edge waits no more.

        Raises:
            Fenced: Another worker goes on with the turn.
            Unavailable: Redis is away.
            TimeoutError: It took too long.
        """
        async with asyncio.timeout(_CUT_SECONDS):
            await self._writer.cut()
            await self._speech.leave()
            await self._reply("interrupted")

    def _show(self) -> None:
        """Let the device show what was typed for it, as it shows what it hears."""
        if self._heard.typed and self._session.edge:
            with suppress(Unavailable, Overloaded):
                self._publish(TranscriptCommand(self._session.id, self._heard.text))

    async def _reply(self, state: ReplyState) -> None:
        """Count how it ended, and answer whoever typed."""
        timed.outcomes.add(state)
        if self._heard.typed:
            reply, owner = Reply(state, self._speech.messages.whole), self._shard.owner
            await self._resources.replies.write(owner, self._session.device, self._heard.turn, reply)

    def _apology_for(self, failure: Exception | None) -> Phrase | None:
        """Return what to say of a failure; nothing of one after which the turn is taken up again, it is raised."""
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

    async def _ask(self, before: Progress) -> None:
        """Let the model answer, within the turn's limit."""
        async with self._deadline.limit():
            asked, tools = await self._prepare(before)
            added = await agent.run_turn(asked, self._resources.llm, tools, self._writer, before)
            if not any(message.text.strip() for message in added if message.role == "assistant"):
                raise ProviderError("the model wrote no answer", retryable=False)

    async def _prepare(self, before: Progress) -> tuple[Sequence[Message], agent.AgentTools]:
        """Return what the model is asked, and the tools that it may call."""
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
        caller = Caller(self._session.id or mac, timezone_offset=offset, persona=context.persona)
        link = DeviceLink(self._resources, self._calls, self._shard, self._session)
        own = DeviceTools(toolbox, link, self._heard.turn, self._deadline, settings.tool_seconds)
        return asked, self._beside(own, caller, before)

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
        await self._writer.apologise(phrase(failure, language))

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
            reports=describe(context.reports),
        )
