"""What a turn has said and done: its journal while it runs, in the end its part of the history."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from fleet.adapters.redis.sessions.conversations import Conversations, StoredJournal, TurnState
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.agent import Progress
from fleet.core.history import certain, cut, settle
from fleet.core.ports import Message
from fleet.ground.errors import Fenced
from fleet.roles.worker.turns.speech import AnswerSpeech

log = logging.getLogger(__name__)

SHORT = 4_000
"""Characters of a turn that are cut into sentences at once; longer ones in a thread."""


class JournalWriter:
    """The output of one turn: what it says and its journal, kept in Redis under the shard's fence.

    A step is written down before it has an effect outside: a sentence before the edge is given it, the model's wish for
    calls before they begin. The calls' own outcomes are in their own records, which their names for ever lead to.

    Args:
        conversations: Where it is kept.
        owner: The shard's lease.
        mac: The device.
        journal: How far the turn has got.
        speech: Says what is written.
    """

    def __init__(
        self, conversations: Conversations, owner: Owner, mac: str, journal: StoredJournal, speech: AnswerSpeech
    ) -> None:
        self._conversations = conversations
        self._owner = owner
        self._mac = mac
        self._turn = journal.turn
        self._speech = speech
        self._whole = journal.messages
        self._partial = journal.partial
        self._apology = journal.apology
        self._news = False

    @property
    def apologised(self) -> bool:
        """Whether the turn ended with an apology."""
        return bool(self._apology)

    async def replay(self) -> Progress:
        """Say again what was written, so that the edge has all of it; return where the model is to go on.

        Raises:
            Unavailable: Redis is away.
        """
        long = len(self._partial) > SHORT
        if part := await asyncio.to_thread(certain, self._partial) if long else certain(self._partial):
            self._whole, self._news = (*self._whole, Message("assistant", part)), True
        self._partial = ""
        for text in (*(one.text for one in self._whole if one.role == "assistant"), self._apology):
            await self._speech.interject(text, repeated=True)
        await self._speech.stay()
        await self._speech.hand_over()
        return _progress(self._whole[1:])

    async def say(self, text: str) -> None:
        """Take the next piece of the model's message, and speak it.

        Raises:
            Fenced: The shard is another worker's now, or a newer turn has begun.
            Unavailable: Redis is away.
        """
        self._partial += text
        self._speech.write(text)
        if self._speech.waits:
            await self._write()
        await self._speech.hand_over()

    async def think(self, text: str) -> None:
        """Take the next piece of the model's thoughts, and show it to a device that shows text.

        Raises:
            Fenced: The lease may have ended.
        """
        self._speech.messages.think(text)

    async def record(self, messages: Sequence[Message]) -> None:
        """Write down the turn's messages so far.

        Raises:
            Fenced: The shard is another worker's now, or a newer turn has begun.
            Unavailable: Redis is away.
        """
        self._speech.flush()
        self._whole, self._partial, self._news = (self._whole[0], *messages), "", True
        if messages[-1].calls:
            await self._write()
            await self._speech.hand_over()
        # An answer ends the turn: `keep` writes it down with the history. The outcomes of calls are kept by the calls.

    async def apologise(self, text: str) -> None:
        """End what is said with an apology, which is no part of the history."""
        self._speech.flush()
        self._apology = text
        await self._speech.interject(text)

    async def keep(self) -> None:
        """Put the turn into the history, before its last words are handed over.

        Raises:
            Fenced: The shard is another worker's now, or the turn was cut off or a newer one has begun.
            Unavailable: Redis is away.
        """
        lines = settle(self._messages())
        # A question without an answer would only confuse a model later.
        if not await self._remember("written", lines if len(lines) > 1 else ()):
            raise Fenced("the turn is over")

    async def cut(self) -> None:
        """Put a turn that was cut off into the history, as if all that was handed to the edge had been heard.

        The edge says how much it really was where it can, and `amend` puts it right.

        Raises:
            Fenced: The shard is another worker's now.
            Unavailable: Redis is away.
        """
        await self._remember("cut", await _cut(self._messages(), self._speech.handed))

    async def _write(self) -> None:
        journal = StoredJournal(self._turn, "running", self._whole, self._speech.handed, self._partial)
        await self._conversations.record(self._owner, self._mac, journal, whole=self._news)
        self._news = False
        log.debug("turn journalled", extra={"messages": len(self._whole), "sentences": self._speech.handed})

    async def _remember(self, state: TurnState, lines: Sequence[Message]) -> bool:
        journal = StoredJournal(self._turn, state, self._messages(), self._speech.handed, apology=self._apology)
        kept = await self._conversations.remember(self._owner, self._mac, journal, lines)
        log.debug("turn remembered", extra={"state": state})
        return kept

    def _messages(self) -> tuple[Message, ...]:
        return (*self._whole, Message("assistant", self._partial)) if self._partial else self._whole


def _progress(messages: tuple[Message, ...]) -> Progress:
    """Return where a model is to go on: answers without calls at the end are what was said of one that broke off."""
    end = len(messages)
    while end and messages[end - 1].role == "assistant" and not messages[end - 1].calls:
        end -= 1
    return Progress(messages[:end], tuple(message.text for message in messages[end:]))


async def _cut(messages: Sequence[Message], spoken: int) -> tuple[Message, ...]:
    """Cut a turn as `fleet.core.history.cut`; a long one takes seconds, in which others have their turn."""
    if sum(len(message.text) for message in messages) <= SHORT:
        return cut(messages, spoken)
    return await asyncio.to_thread(cut, messages, spoken)


async def amend(conversations: Conversations, owner: Owner, mac: str, turn: str, spoken: int) -> None:
    """Correct what is remembered of a device's newest turn to what was heard of it."""
    journal = await conversations.journal(mac)
    if journal is None or journal.turn != turn:
        log.info("interruption of a turn that is over", extra={"turn": turn})
        return
    lines = await _cut(journal.written, spoken)
    await conversations.remember(owner, mac, replace(journal, state="cut"), lines)


async def settle_orphan(conversations: Conversations, owner: Owner, mac: str) -> None:
    """End a device's newest turn if it still runs, though nobody works on it: what it said and did is remembered."""
    journal = await conversations.journal(mac)
    if journal is not None and journal.state == "running":
        log.warning("turn was left alone", extra={"turn": journal.turn})
        lines = await _cut(journal.written, journal.sentences)
        await conversations.remember(owner, mac, replace(journal, state="cut"), lines)
