"""What a turn has said and done: its journal while it runs, in the end its part of the history."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from fleet.core.history import cut, settle
from fleet.core.ports import Message
from fleet.errors import Fenced, FleetError
from fleet.store.conversations import Conversations, Journal, TurnState
from fleet.store.owner import Owner
from fleet.wire.mail import UtteranceHeard
from fleet.worker.speech import Speech

log = logging.getLogger(__name__)

_ABANDON_SECONDS = 1.0


class Record:
    """The agent's journal of one turn, kept in Redis under the shard's fence.

    Args:
        conversations: Where it is kept.
        owner: The shard's lease.
        heard: What the turn answers.
        speech: Says what is written.
    """

    def __init__(self, conversations: Conversations, owner: Owner, heard: UtteranceHeard, speech: Speech) -> None:
        self._conversations = conversations
        self._owner = owner
        self._heard = heard
        self._speech = speech
        self._whole: tuple[Message, ...] = (Message("user", heard.text),)
        self._partial = ""
        self._kept = False

    async def say(self, text: str) -> None:
        """Take the next piece of the model's message, and speak it."""
        self._partial += text
        await self._speech.write(text)

    async def record(self, messages: Sequence[Message]) -> None:
        """Write down the turn's messages so far."""
        await self._speech.flush()
        self._whole, self._partial = (self._whole[0], *messages), ""
        if messages[-1].role == "tool" or messages[-1].calls:
            await self._conversations.record(self._owner, self._heard.device, self._journal("running"))
        # An answer ends the turn: `keep` writes it down with the history.

    async def keep(self) -> None:
        """Put the turn into the history; an answer that cannot be remembered is given all the same.

        Raises:
            Fenced: The shard is another worker's now.
        """
        lines = settle(self._messages())
        try:
            if len(lines) > 1:  # A question without an answer would only confuse a model later.
                await self._remember("written", lines)
        except Fenced:
            raise
        except FleetError as error:
            log.warning("turn not remembered", extra={"reason": str(error)})
        self._kept = True

    async def abandon(self) -> None:
        """Put a turn that was cut off into the history, as if all that was handed to the edge had been heard.

        The edge says how much it really was where it can, and `amend` puts it right.
        """
        if self._kept:
            return
        try:
            async with asyncio.timeout(_ABANDON_SECONDS):
                await self._remember("cut", cut(self._messages(), self._speech.sentences))
        except (FleetError, TimeoutError) as error:
            log.warning("turn not remembered", extra={"reason": str(error) or "no answer in time"})

    async def _remember(self, state: TurnState, lines: Sequence[Message]) -> None:
        await self._conversations.remember(self._owner, self._heard.device, self._journal(state), lines)

    def _journal(self, state: TurnState) -> Journal:
        return Journal(self._heard.turn, state, self._messages(), self._speech.sentences)

    def _messages(self) -> tuple[Message, ...]:
        return (*self._whole, Message("assistant", self._partial)) if self._partial else self._whole


async def amend(conversations: Conversations, owner: Owner, mac: str, turn: str, spoken: int) -> None:
    """Correct what is remembered of a device's newest turn to what was heard of it."""
    journal = await conversations.journal(mac)
    if journal is None or journal.turn != turn:
        log.info("interruption of a turn that is over", extra={"turn": turn})
        return
    await conversations.remember(owner, mac, replace(journal, state="cut"), cut(journal.messages, spoken))
