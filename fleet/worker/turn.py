"""One turn: a user's utterance until its answer is written."""

import logging
from datetime import UTC, datetime, timedelta

from fleet.core import agent
from fleet.core.history import since_user
from fleet.core.phrases import DEFAULT_PROMPT, Phrase, phrase
from fleet.core.ports import Message
from fleet.core.reports import tell
from fleet.core.tool_kinds import kind_of
from fleet.core.toolbox import Toolbox
from fleet.errors import Fenced, FleetError
from fleet.log import fields
from fleet.store.sessions import Session
from fleet.wire.mail import UtteranceHeard
from fleet.wire.words import CallTool
from fleet.worker.calls import DeviceCalls, Outcome, Terms
from fleet.worker.camera import introduce
from fleet.worker.device_tools import DeviceTools
from fleet.worker.discovery import new_number
from fleet.worker.patience import Patience
from fleet.worker.record import Record
from fleet.worker.resources import Resources
from fleet.worker.shard import Shard
from fleet.worker.speech import Speech

log = logging.getLogger(__name__)


class Turn:
    """Answers one utterance.

    Args:
        resources: What it works with.
        calls: Calls the device's tools.
        shard: The device's.
        session: The device's.
        heard: What the user said.
    """

    def __init__(
        self, resources: Resources, calls: DeviceCalls, shard: Shard, session: Session, heard: UtteranceHeard
    ) -> None:
        self._resources = resources
        self._calls = calls
        self._shard = shard
        self._session = session
        self._heard = heard
        self._speech = Speech(shard, resources.mailboxes, session, heard.turn, heard.language)
        self._record = Record(resources.conversations, shard.owner, heard, self._speech)
        self._patience = Patience(resources.settings.turn_seconds, self._speech)

    async def run(self) -> None:
        """Answer; whatever happens, the edge hears that the answer has ended, and what was said is remembered."""
        with fields(session=self._session.id, turn=self._heard.turn):
            try:
                await self._run()
            finally:
                await self._speech.abandon()
                await self._record.abandon()

    async def _run(self) -> None:
        log.info("turn begins", extra={"pii": {"text": self._heard.text}})
        failure = await self._answer()
        if failure is not None:
            await self._speech.flush()
            await self._speech.write(phrase(failure, self._heard.language))
        await self._speech.flush()
        await self._record.keep()
        await self._speech.end()
        log.info("turn written", extra={"sentences": self._speech.sentences})

    async def _answer(self) -> Phrase | None:
        """Let the model answer; return what to say when it could not."""
        try:
            async with self._patience.limit():
                await self._ask()
        except Fenced:
            raise
        except TimeoutError:
            log.warning("turn took too long", extra={"limit": self._resources.settings.turn_seconds})
            return "too_long"
        except FleetError as error:
            log.warning("turn failed", extra={"reason": str(error)})
            return "failed"
        return None

    async def _ask(self) -> None:
        settings, mac = self._resources.settings, self._session.device
        context = await self._resources.conversations.context(mac, settings.history_messages)
        toolbox = Toolbox(context.tools)
        if toolbox.left_out:
            log.warning("too many tools to offer", extra={"left_out": toolbox.left_out})
        asked = (
            Message("system", f"{self._prompt()}\n{tell(context.reports)}".strip()),
            *since_user(context.history),
            Message("user", self._heard.text),
        )
        tools = DeviceTools(toolbox, self._send, self._session, self._heard.turn, self._patience, settings.tool_seconds)
        await agent.run_turn(asked, self._resources.llm, tools, self._record.say, self._record)

    async def _send(self, order: CallTool, terms: Terms) -> Outcome:
        mac = self._session.device
        if kind_of(order.name).camera:
            fresh = await introduce(self._resources, mac, new_number())
            # The token that the device has may be over.
            if fresh.vision_url:
                self._shard.tell(mac, fresh)
        return await self._calls.call(self._shard, mac, order, terms)

    def _prompt(self) -> str:
        settings, language = self._resources.settings, self._heard.language
        now = datetime.now(UTC) + timedelta(minutes=settings.timezone_offset)
        spoken = f" The user speaks {language!r}." if language else ""
        return f"{settings.prompt or DEFAULT_PROMPT}{spoken} It is {now:%A, %Y-%m-%d %H:%M}."
