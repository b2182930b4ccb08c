"""Write the journal of a running turn, and at its end its part of the history."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from fleet.adapters.redis.sessions.conversations import NO_ENDING, Conversations, Ending, StoredJournal, TurnState
from fleet.adapters.redis.shards.inbox import NO_POST
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.agent import Progress
from fleet.core.history import certain, cut, settle
from fleet.core.ports import Message, TokenUsage
from fleet.ground.errors import Fenced
from fleet.roles.worker.turns.speech import AnswerSpeech

log = logging.getLogger(__name__)

SHORT = 4_000
"""Characters of a turn that are cut into sentences in the event loop; longer turns are cut in a thread."""


class JournalWriter:
    """The output of one turn: its speech, and its journal in Redis, written under the shard's fence.

    Each step is written before its effect: a sentence before it is handed to the edge, the calls of a model message
    before they begin. The outcomes of calls are in the calls' own records, found by their idempotency keys.

    Args:
        conversations: The journals and histories in Redis.
        owner: The shard's lease.
        mac: The device.
        journal: The progress of the turn so far.
        speech: Of the turn.
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
        self._head = len(journal.lead) + 1
        self._partial = journal.partial
        self._apology = journal.apology
        self._changed = False
        self.terms = journal.terms
        """How long the history is kept; None for the settings."""
        self.usage = journal.usage
        """The turn's tokens so far."""

    @property
    def apologised(self) -> bool:
        """Whether the turn ended with an apology."""
        return bool(self._apology)

    async def replay(self) -> Progress:
        """Say again what the journal has, so that the edge has all of it; return where the model continues.

        Raises:
            Unavailable: Redis is away.
        """
        long = len(self._partial) > SHORT
        if part := await asyncio.to_thread(certain, self._partial) if long else certain(self._partial):
            self._whole, self._changed = (*self._whole, Message("assistant", part)), True
        self._partial = ""
        for text in (*(one.text for one in self._whole if one.role == "assistant"), self._apology):
            await self._speech.add_message(text, repeated=True)
        await self._speech.edge.send_progress()
        await self._speech.hand_over()
        return _progress(self._whole[self._head :])

    async def open_with(self, lead: Sequence[Message]) -> None:
        """Say a text before the answer; `lead` is a request for it and the text.

        Raises:
            Fenced: Another worker owns the shard, or a newer turn has begun.
            Unavailable: Redis is away.
        """
        self._whole, self._changed = (*lead, *self._whole), True
        self._head += len(lead)
        await self._write()
        await self._speech.add_message(lead[-1].text)

    async def say(self, text: str) -> None:
        """Take the next piece of the model's message, and speak it.

        Raises:
            Fenced: Another worker owns the shard, or a newer turn has begun.
            Unavailable: Redis is away.
        """
        self._partial += text
        self._speech.write(text)
        if self._speech.waits:
            await self._speech.edge.wait_for_room()
            await self._write()
        await self._speech.hand_over()

    async def think(self, text: str) -> None:
        """Take the next piece of the model's reasoning, and send it to a device that shows text.

        Raises:
            Fenced: The lease may have ended.
        """
        self._speech.messages.think(text)

    def spend(self, usage: TokenUsage) -> None:
        """Add the tokens of one request; the next step writes them down."""
        self.usage += usage

    async def record(self, messages: Sequence[Message]) -> None:
        """Write the turn's messages so far.

        Raises:
            Fenced: Another worker owns the shard, or a newer turn has begun.
            Unavailable: Redis is away.
        """
        self._speech.flush()
        self._whole, self._partial, self._changed = (*self._whole[: self._head], *messages), "", True
        if messages[-1].calls:
            await self._write()
            await self._speech.hand_over()
        # Without calls the message is the answer: `keep` writes it with the history. Calls keep their own outcomes.

    async def apologise(self, text: str) -> None:
        """End the speech with an apology, which does not become part of the history."""
        self._speech.flush()
        self._apology = text
        await self._speech.add_message(text)

    async def keep(self, entry: str) -> bool:
        """Put the turn into the history, and then send its last sentences and its end.

        Args:
            entry: The turn's entry in the inbox, if nothing else is left to do; else empty.

        Returns:
            Whether the entry was discarded.

        Raises:
            Fenced: Another worker owns the shard, or the turn was cut off, or a newer one has begun.
            Unavailable: Redis is away.
        """
        lines = settle(self._messages())
        # A question without an answer would confuse the model in later turns.
        lines = lines if len(lines) > self._head else lines[: self._head - 1]
        self._speech.close()
        post = self._speech.edge.post()
        ending = Ending(post, entry if post != NO_POST else "")
        if not await self._write_history("written", lines, ending):
            raise Fenced("the turn has ended")
        self._speech.edge.note_posted(post)
        return bool(ending.entry)

    async def cut(self) -> None:
        """Put a turn that was cut off into the history, as if all sentences handed to the edge had been spoken.

        If the edge reports how many were spoken, `amend` corrects the history.

        Raises:
            Fenced: Another worker owns the shard.
            Unavailable: Redis is away.
        """
        await self._write_history("cut", await _cut(self._messages(), self._speech.handed))

    async def _write(self) -> None:
        handed, usage = self._speech.handed, self.usage
        journal = StoredJournal(self._turn, "running", self._whole, handed, self._partial, usage=usage)
        post = self._speech.edge.post()
        try:
            await self._conversations.record(self._owner, self._mac, journal, post, whole=self._changed)
        except asyncio.CancelledError:
            # It was sent, so the edge may have the sentences.
            self._speech.count_posted(post)
            raise
        self._speech.edge.note_posted(post)
        self._changed = False
        log.debug("turn journalled", extra={"messages": len(self._whole), "sentences": self._speech.handed})

    async def _write_history(self, state: TurnState, lines: Sequence[Message], ending: Ending = NO_ENDING) -> bool:
        handed, apology, usage = self._speech.handed, self._apology, self.usage
        journal = StoredJournal(self._turn, state, self._messages(), handed, "", apology, usage, self.terms)
        facts = self._speech.stages.facts(self._speech.utterance.language)
        try:
            kept = await self._conversations.remember(self._owner, self._mac, journal, lines, facts, ending)
        except asyncio.CancelledError:
            self._speech.count_posted(ending.post)  # as in `_write`
            raise
        log.debug("turn remembered", extra={"state": state})
        return kept

    def _messages(self) -> tuple[Message, ...]:
        return (*self._whole, Message("assistant", self._partial)) if self._partial else self._whole


def _progress(messages: tuple[Message, ...]) -> Progress:
    """Return where the model continues; messages without calls at the end are the parts of an unfinished answer."""
    end = len(messages)
    while end and messages[end - 1].role == "assistant" and not messages[end - 1].calls:
        end -= 1
    return Progress(messages[:end], tuple(message.text for message in messages[end:]))


async def _cut(messages: Sequence[Message], spoken: int) -> tuple[Message, ...]:
    """Cut a turn with `fleet.core.history.cut`; a long one takes seconds and runs in a thread."""
    if sum(len(message.text) for message in messages) <= SHORT:
        return cut(messages, spoken)
    return await asyncio.to_thread(cut, messages, spoken)


async def amend(conversations: Conversations, owner: Owner, mac: str, turn: str, spoken: int | None) -> None:
    """Correct the history of a device's newest turn to the sentences that were spoken.

    With None for `spoken` the turn was withdrawn: of such a turn only calls stay, since they may have had an effect.
    """
    journal = await conversations.journal(mac)
    if journal is None or journal.turn != turn:
        log.info("interruption of an ended turn", extra={"turn": turn})
        return
    called = any(message.calls for message in journal.written)
    lines = () if spoken is None and not called else await _cut(journal.written, spoken or 0)
    await conversations.remember(owner, mac, replace(journal, state="cut"), lines)


async def end_abandoned_turn(conversations: Conversations, owner: Owner, mac: str) -> None:
    """End a device's newest turn if its journal says `running` though no worker runs it; put it into the history."""
    journal = await conversations.journal(mac)
    if journal is not None and journal.state == "running":
        log.warning("abandoned turn ended", extra={"turn": journal.turn})
        lines = await _cut(journal.written, journal.sentences)
        await conversations.remember(owner, mac, replace(journal, state="cut"), lines)
