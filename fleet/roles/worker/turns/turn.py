"""One turn: from a user's utterance until its answer is written."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from msgspec import structs

from fleet.adapters.redis.sessions.conversations import Begun, StoredJournal
from fleet.adapters.redis.sessions.replies import Reply, ReplyState
from fleet.adapters.redis.sessions.sessions import SessionRecord
from fleet.core import agent
from fleet.core.agent import Progress
from fleet.core.device_toolbox import device_toolbox
from fleet.core.history import since_user
from fleet.core.ports import Llm, Message
from fleet.core.prompt import local_now
from fleet.core.reports import describe
from fleet.core.server_tools import Caller, Persona
from fleet.core.situation import describe_situation, situate
from fleet.core.text.phrases import Phrase, known_language, phrase
from fleet.core.tool_policy import read_policy
from fleet.ground.errors import Fenced, Overloaded, ProviderError, Unavailable
from fleet.ground.local_time import own_offset
from fleet.ground.metrics import turns as timed
from fleet.ground.tasks import isolate
from fleet.ground.tracing import spans
from fleet.roles.worker.announcements.kept import KeptText
from fleet.roles.worker.calls.device_calls import DeviceCalls
from fleet.roles.worker.calls.device_tools import DeviceLink, DeviceTools
from fleet.roles.worker.calls.server_calls import ServerCalls
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.turns.announced import FixedAnswer, lead_of
from fleet.roles.worker.turns.consent import TurnConsent
from fleet.roles.worker.turns.deadline import TurnDeadline
from fleet.roles.worker.turns.head_start import AheadLlm, HeadStart, Request
from fleet.roles.worker.turns.journal_writer import JournalWriter
from fleet.roles.worker.turns.live import LiveTranscript
from fleet.roles.worker.turns.own_tools import server_tools
from fleet.roles.worker.turns.speech import AnswerSpeech
from fleet.roles.worker.turns.turn_agent import TurnAgent
from fleet.wire.agents import NO_AGENT
from fleet.wire.edge_messages import UtteranceEvent
from fleet.wire.messages import DeviceCommand, TranscriptCommand

log = logging.getLogger(__name__)

_CUT_SECONDS = 2.0
_EXPECTED = (TimeoutError, ProviderError, Fenced, Unavailable)
"""Expected failures of an answer."""


class WorkerTurn:
    """Answers one utterance, from the beginning or from where another worker left the turn.

    Args:
        resources: Of the worker.
        calls: Calls the device's tools.
        shard: The device's shard.
        begun: The device's session, and the turn's journal if another worker began it.
        utterance: What the user said.
    """

    def __init__(
        self, resources: WorkerResources, calls: DeviceCalls, shard: Shard, begun: Begun, utterance: UtteranceEvent
    ) -> None:
        self._resources = resources
        self._calls = calls
        self._shard = shard
        self.begun = begun
        """Without the context, if that is to be read again."""
        self._heard = utterance
        self._journal = begun.journal or StoredJournal(utterance.turn, "running", (Message("user", utterance.text),), 0)
        handed = self._journal.sentences
        self._speech = AnswerSpeech(shard, resources.inboxes, begun.session, utterance, handed)
        self._consent = TurnConsent(resources, shard, begun, utterance, self._speech)
        if begun.watched:
            self._speech.messages.live = LiveTranscript(resources.transcripts, utterance)
        self._writer = JournalWriter(
            resources.conversations, shard.owner, utterance.device, self._journal, self._speech
        )
        self._agent = TurnAgent("", NO_AGENT, resources.settings)
        self.ahead: HeadStart | FixedAnswer | None = None
        """The first message of the model, if it was read ahead; or what is said in its place."""
        self._deadline = TurnDeadline(resources.settings.turn_seconds, self._speech, announced=not utterance.typed)

    @property
    def _session(self) -> SessionRecord:
        return self.begun.session

    async def run(self, kept: KeptText | None = None, entry: str = "") -> bool:
        """Answer, and end the answer on the edge.

        Args:
            kept: What is said before the answer.
            entry: The turn's entry in the inbox, if it may be discarded as soon as the edge has the whole answer.

        Returns:
            Whether it was.

        Raises:
            Fenced: Another worker continues the turn, or a newer one has begun.
            Unavailable: Redis is away; the turn can be taken up again.
        """
        resumed = self.begun.journal is not None
        if resumed:
            log.info("turn taken up", extra={"state": self._journal.state, "sentences": self._journal.sentences})
        else:
            log.info("turn begins", extra={"pii": {"text": self._heard.text}})
            self._show_typed()
            if self._speech.messages.live is not None:
                await self._speech.messages.live.begin()
        if self._journal.state == "cut":
            await self._speech.abort()
            await self._store_reply("interrupted")
            return False
        before = await self._writer.replay() if resumed else Progress()
        if kept is not None:
            await self._say_first(kept)
        discarded = False
        if self._journal.state == "running":
            if self.begun.late:
                log.warning("turn comes too late")
                failure: Phrase | None = "failed"
            else:
                failure = self._apology_for(await isolate("answer", self._ask(before), _EXPECTED))
            if failure is not None:
                await self._apologise(failure)
            discarded = await self._writer.keep("" if self._heard.typed or self._speech.messages.shows else entry)
        await self._speech.end()
        await self._store_reply("failed" if self._writer.apologised else "answered")
        tokens = self._writer.usage.named()
        spans.current().set({f"gen_ai.usage.{name}": count for name, count in tokens.items()})
        log.info("turn written", extra={"sentences": self._speech.handed, **tokens})
        return discarded

    async def _say_first(self, kept: KeptText) -> None:
        """Say a text that was kept for the device; that it is said in this turn is noted before."""
        await kept.note(self._heard.turn)
        speech, language = self._speech, self._speech.utterance.language
        speech.utterance = structs.replace(speech.utterance, language=kept.language)
        lead = lead_of(kept.text)
        self._journal = replace(self._journal, messages=(*lead, *self._journal.messages))
        await self._writer.open_with(lead)
        kept.handed = True
        kept.decided.set()
        speech.utterance = structs.replace(speech.utterance, language=language)
        await speech.hand_over()

    async def ask_ahead(self) -> tuple[Llm, Request, str]:
        """Return the model, the turn's first request, and the language of its speech; this has no effect outside."""
        prompt, tools = await self._prepare(Progress())
        request = Request(tuple(prompt), tuple(tools.offers), self._agent.options, self._agent.digest)
        return await self._agent.model(self._resources), request, self._speech.utterance.language

    async def cut(self) -> None:
        """End a cancelled turn: put it into the history as far as it got, and end its answer on the edge.

        Raises:
            Fenced: Another worker continues the turn.
            Unavailable: Redis is away.
            TimeoutError: It took too long.
        """
        async with asyncio.timeout(_CUT_SECONDS):
            await self._writer.cut()
            await self._speech.abort()
            await self._store_reply("interrupted")

    def _show_typed(self) -> None:
        """Send the device a typed text to show, as the edge does with a recognised one."""
        if self._heard.typed and self._session.edge and not isinstance(self.ahead, FixedAnswer):
            with suppress(Unavailable, Overloaded):
                self._publish(TranscriptCommand(self._session.id, self._heard.text))

    async def _store_reply(self, state: ReplyState) -> None:
        """Count the outcome, and store the reply to a typed text."""
        timed.outcomes.add(state)
        if self._speech.messages.live is not None:
            await self._speech.messages.live.end(state)
        if self._heard.typed:
            reply, owner = Reply(state, self._speech.messages.whole), self._shard.owner
            await self._resources.replies.write(owner, self._session.device, self._heard.turn, reply)

    def _apology_for(self, failure: Exception | None) -> Phrase | None:
        """Return the apology for a failure; raise a failure after which the turn is taken up again."""
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
        """Run the agent loop within the turn's time limit."""
        async with self._deadline.limit():
            prompt, tools = await self._prepare(before)
            before = self._consent.add_confirmed(before)
            llm = await self._agent.model(self._resources)
            if isinstance(self.ahead, FixedAnswer):
                llm = self.ahead
            elif self.ahead:
                llm = AheadLlm(llm, self.ahead, self._agent.digest)
            added = await agent.run_turn(prompt, llm, tools, self._writer, before, self._agent.options)
            if not any(message.text.strip() for message in added if message.role == "assistant"):
                raise ProviderError("the model wrote no answer", retryable=False)

    async def _prepare(self, before: Progress) -> tuple[Sequence[Message], agent.AgentTools]:
        """Return the model's prompt and tools."""
        settings, mac = self._resources.settings, self._session.device
        context = self.begun.context or await self._resources.conversations.context(mac, settings.history_messages)
        chosen = self._agent = await TurnAgent.find(self._resources, context.agent)
        self._speech.agent, self._writer.terms = chosen.digest, chosen.history
        self._speech.stages.agent = chosen.agent.name
        persona = chosen.persona(context.persona)
        self._speech.set_language(persona.language)
        gate = self._consent.gate(read_policy(chosen.settings.tool_policy))
        link = DeviceLink(self._resources, self._calls, self._shard, self._session)
        toolbox = device_toolbox(context.tools, link.source, gate)
        gate.hidden = toolbox.hidden
        if toolbox.left_out:
            log.warning("too many tools to offer", extra={"left_out": toolbox.left_out})
        offset = own_offset(context.timezone, settings.timezone, datetime.now(UTC))
        heard, reports = self._heard, f"{self._consent.note}\n{describe(context.reports)}".strip()
        situation = describe_situation(local_now(offset), language=heard.language, reports=reports)
        asked = situate(since_user((*context.history, *self._journal.lead)), heard.text, situation)
        prompt = (Message("system", chosen.prompt(self._resources, context)), *asked)
        caller = Caller(self._session.id or mac, timezone_offset=offset, persona=persona)
        own = DeviceTools(toolbox, link, self._heard.turn, self._deadline, settings.tool_seconds, gate)
        tools = server_tools(self._resources, self._shard, chosen, context, self._heard, caller)
        if tools is None:
            return prompt, own
        return prompt, ServerCalls(tools, self._save_persona, caller).mix_with(own, before, gate)

    def _publish(self, command: DeviceCommand) -> None:
        self._shard.publish(self._session.device, command, self._session.dialect)

    async def _apologise(self, failure: Phrase) -> None:
        """Apologise in the language of the speech, else of the utterance, else of the server."""
        settings = self._agent.settings
        language = known_language(self._speech.utterance.language, self._heard.language, settings.language)
        self._speech.set_language(language)
        await self._writer.apologise(phrase(failure, language))

    async def _save_persona(self, persona: Persona) -> None:
        """Store a new persona, and speak in its language."""
        await self._resources.personas.keep(self._shard.owner, self._session.device, self._agent.chosen(persona))
        self._speech.set_language(persona.language)
