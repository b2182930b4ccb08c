"""Turns: one user utterance until the answer is written."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from fleet.core import agent
from fleet.core.phrases import DEFAULT_PROMPT, Phrase, phrase
from fleet.core.ports import Message
from fleet.core.toolbox import Toolbox
from fleet.errors import Fenced, FleetError
from fleet.log import fields
from fleet.store.conversations import Journal
from fleet.store.sessions import Session
from fleet.wire.mail import UtteranceHeard
from fleet.worker.calls import DeviceCalls
from fleet.worker.device_tools import DeviceTools
from fleet.worker.resources import Resources
from fleet.worker.shard import Shard
from fleet.worker.speech import Speech

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Running:
    turn: str
    task: asyncio.Task[None]


class Turns:
    """Runs at most one turn for each device; a newer one ends an older one."""

    def __init__(self, resources: Resources, calls: DeviceCalls) -> None:
        self._resources = resources
        self._calls = calls
        self._running: dict[str, _Running] = {}

    async def begin(self, shard: Shard, heard: UtteranceHeard) -> None:
        """Start a turn in the background, once it is written down that it began."""
        session = await self._resources.sessions.read(heard.device)
        if session is None or session.id != heard.session:
            log.info("utterance of a session that is over", extra={"session": heard.session})
            return
        earlier = await self._resources.conversations.journal(heard.device)
        if earlier is not None and earlier.turn == heard.turn:
            log.info("utterance delivered again", extra={"turn": heard.turn})
            return
        self.cancel(heard.device)
        asked = Message("user", heard.text)
        journal = Journal(heard.turn, "running", (asked,), 0)
        await self._resources.conversations.record(shard.owner, heard.device, journal)
        await self._resources.sessions.keep(heard.device)
        task = shard.spawn(f"turn {heard.device}", self._guard(shard, session, heard))
        self._running[heard.device] = _Running(heard.turn, task)

    def cancel(self, mac: str, turn: str | None = None) -> None:
        """End the device's running turn, or only a certain one; its model request is closed."""
        running = self._running.get(mac)
        if running is None or (turn is not None and running.turn != turn):
            return
        del self._running[mac]
        if running.task.cancel():
            log.info("turn cancelled", extra={"turn": running.turn})

    async def _guard(self, shard: Shard, session: Session, heard: UtteranceHeard) -> None:
        with fields(session=session.id, turn=heard.turn):
            speech = Speech(shard, self._resources.mailboxes, session, heard.turn, heard.language)
            try:
                await self._run(shard, session, heard, speech)
            finally:
                await speech.abandon()
                running = self._running.get(session.device)
                if running is not None and running.turn == heard.turn:
                    del self._running[session.device]

    async def _run(self, shard: Shard, session: Session, heard: UtteranceHeard, speech: Speech) -> None:
        log.info("turn begins", extra={"pii": {"text": heard.text}})
        failure: Phrase | None = None
        try:
            async with asyncio.timeout(self._resources.settings.turn_seconds):
                added = await self._answer(shard, session, heard, speech)
            await self._remember(shard, heard, added)
        except Fenced:
            raise
        except TimeoutError:
            log.warning("turn took too long", extra={"limit": self._resources.settings.turn_seconds})
            failure = "too_long"
        except FleetError as error:
            log.warning("turn failed", extra={"reason": str(error)})
            failure = "failed"
        if failure is not None:
            await speech.flush()
            await speech.write(phrase(failure, heard.language))
        await speech.end()
        log.info("turn written", extra={"sentences": speech.sentences})

    async def _answer(
        self, shard: Shard, session: Session, heard: UtteranceHeard, speech: Speech
    ) -> tuple[Message, ...]:
        settings, mac = self._resources.settings, session.device
        toolbox = Toolbox(await self._resources.tools.read(mac))
        history = await self._resources.conversations.history(mac, settings.history_messages)
        asked = (self._system(heard.language), *_whole(history), Message("user", heard.text))
        tools = DeviceTools(toolbox, self._calls, shard, session, heard.turn, seconds=settings.tool_seconds)
        journal = _TurnJournal(self._resources, shard, mac, heard, speech)
        return await agent.run_turn(asked, self._resources.llm, tools, speech.write, journal)

    async def _remember(self, shard: Shard, heard: UtteranceHeard, added: Sequence[Message]) -> None:
        messages = (Message("user", heard.text), *added)
        await self._resources.conversations.remember(shard.owner, heard.device, messages)

    def _system(self, language: str) -> Message:
        settings = self._resources.settings
        now = datetime.now(UTC) + timedelta(minutes=settings.timezone_offset)
        prompt = settings.prompt or DEFAULT_PROMPT
        spoken = f" The user speaks {language!r}." if language else ""
        return Message("system", f"{prompt}{spoken} It is {now:%A, %Y-%m-%d %H:%M}.")


class _TurnJournal:
    """The agent's journal, kept in Redis under the shard's fence."""

    def __init__(self, resources: Resources, shard: Shard, mac: str, heard: UtteranceHeard, speech: Speech) -> None:
        self._resources = resources
        self._shard = shard
        self._mac = mac
        self._heard = heard
        self._speech = speech

    async def record(self, messages: Sequence[Message]) -> None:
        await self._speech.flush()
        journal = Journal(
            self._heard.turn, "running", (Message("user", self._heard.text), *messages), self._speech.sentences
        )
        await self._resources.conversations.record(self._shard.owner, self._mac, journal)


def _whole(history: Sequence[Message]) -> Sequence[Message]:
    """Return the history from its first user message on: an answer to a call that was cut off would confuse a model."""
    for at, message in enumerate(history):
        if message.role == "user":
            return history[at:]
    return ()
