"""The turns of one session as its edge sees them: awaited from the shard, spoken, over."""

import logging
from collections import deque
from dataclasses import dataclass
from typing import Literal, Protocol
from uuid import uuid4

from fleet.core.text.phrases import Phrase, phrase
from fleet.ground.errors import FleetError
from fleet.ground.metrics import turns as timed
from fleet.ground.tracing import turns as traced
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.speaking.answer_replay import AnswerReplay
from fleet.roles.edge.speaking.downlink import Downlink
from fleet.roles.edge.speaking.speech import SpokenAnswer
from fleet.roles.edge.transport.downlink import DownlinkTransport
from fleet.wire.edge_messages import (
    AnswerDoneEvent,
    AnswerInterruptedEvent,
    EndAnswerCommand,
    SpeakSentenceCommand,
    StartAnswerCommand,
    TurnProgressCommand,
    UtteranceEvent,
)
from fleet.wire.messages import TranscriptCommand

log = logging.getLogger(__name__)

TURN_MARGIN = 5.0
"""Seconds beyond a turn's own limit after which its shard is no longer waited for."""
_REMEMBERED = 32
_REASONS = {"no_audio_path": "the device sends no audio", "no_worker": "nothing came from the shard"}


@dataclass(slots=True)
class AwaitedTurn:
    """A turn that a shard works on.

    `touched` is when its shard last said something about it, `since` when the user stopped speaking (None for a turn
    that the server began), both on the loop's clock; `language` the ISO 639-1 code of what is said in it.
    """

    id: str
    touched: float
    since: float | None = None
    language: str = ""


class TurnListener(Protocol):
    """Whoever listens to the user between the turns."""

    def resume(self, now: float) -> None:
        """The server has nothing more to say."""

    def fail(self, name: Phrase) -> None:
        """Say why there is no answer."""


class SessionTurns:
    """Asks a session's shard for turns, and speaks its answers.

    Args:
        transport: To the device.
        services: Of the edge.
        listener: Of the session.
    """

    def __init__(self, transport: DownlinkTransport, services: EdgeServices, listener: TurnListener) -> None:
        self._transport = transport
        self._services = services
        self._listener = listener
        self._turn: AwaitedTurn | None = None
        self.downlink = Downlink(transport, services, self)
        self.replay = AnswerReplay(self.downlink)
        self._dropped: deque[str] = deque(maxlen=_REMEMBERED)
        self._limit = services.settings.turn_seconds + TURN_MARGIN

    @property
    def busy(self) -> bool:
        """Whether an answer is awaited, prepared or spoken."""
        return self._turn is not None or self.downlink.speech is not None

    async def ask(self, turn: AwaitedTurn, text: str, language: str, outcome: Literal["understood", "typed"]) -> None:
        """Let the device show a text, and ask the shard to answer it. Whatever was awaited before is over.

        Args:
            turn: The turn's name and times.
            text: What was said or typed.
            language: ISO 639-1 code of what was heard, empty when unknown.
            outcome: What is counted when the shard has it.
        """
        if self._turn:
            self._drop(self._turn.id)
        self._turn = turn
        self.replay.forget()
        opened = self._transport.opened
        self._transport.send_command(TranscriptCommand(opened.session, text))
        heard = UtteranceEvent(
            device=opened.device,
            session=opened.session,
            turn=turn.id,
            text=text,
            language=language,
            traceparent=traced.adopt(turn.id),
        )
        try:
            await self._services.inboxes.to_shard(opened.shard, heard)
        except FleetError as error:
            log.warning("utterance not delivered", extra={"reason": str(error), "kind": type(error).__name__})
            timed.utterances.add("undelivered")
            # It may have been delivered all the same: one apology and no answer.
            self.leave()
            self._listener.fail("failed")
        else:
            timed.utterances.add(outcome)

    def begin(self, command: StartAnswerCommand, now: float) -> bool:
        """Prepare to speak; False when the turn is over already, or was begun before."""
        earlier = self.downlink.speech
        if command.turn in self._dropped or (earlier and earlier.turn == command.turn):
            return False
        if earlier:
            self._drop(earlier.turn)
            if earlier.playout.drained and not earlier.own:
                self._report_done(earlier.turn)
        if not self._turn or self._turn.id != command.turn:
            self._turn = AwaitedTurn(command.turn, now, language=self._turn.language if self._turn else "")
        traced.join(command.turn, command.traceparent)
        self._turn.touched, since = now, self._turn.since
        self.downlink.begin(SpokenAnswer(command.turn, since), now)
        return True

    def touch(self, command: TurnProgressCommand, now: float) -> None:
        """The shard goes on with a turn, though it has nothing to say yet."""
        if self._turn and self._turn.id == command.turn:
            self._turn.touched = now

    def answer_of(self, sentence: SpeakSentenceCommand, now: float) -> SpokenAnswer | None:
        """Return the answer to which a sentence belongs; None for one of a turn that is over."""
        speech = self.downlink.speech
        if speech and speech.turn == sentence.turn and self._turn:
            self._turn.touched = now
            self._turn.language = sentence.language or self._turn.language
            return speech
        self._services.counters["late_sentences"] += 1
        return None

    def end(self, command: EndAnswerCommand, now: float) -> None:
        """The turn's text is complete."""
        speech = self.downlink.speech
        if speech and speech.turn == command.turn:
            speech.end()
        elif self._turn and self._turn.id == command.turn:
            self._drop(command.turn)
            self._turn = None
            self._listener.resume(now)

    def apologise(self, name: Phrase, language: str, now: float) -> None:
        """Say that something went wrong; nothing when the server is speaking already."""
        self._turn = None
        if self.downlink.speech:
            return
        turn = uuid4().hex
        speech = SpokenAnswer(turn, own=True, lazy=True)
        self.downlink.begin(speech, now)
        opened = self._transport.opened
        self._services.traces.note(opened.device, "sorry", name)
        text = phrase(name, language)
        speech.add(
            SpeakSentenceCommand(
                device=opened.device, session=opened.session, turn=turn, index=0, text=text, language=language
            )
        )
        speech.end()

    def interrupt(self, how: Literal["barge-in", "speech aborted", "pressed"], *, stop: bool = True) -> None:
        """The user wants silence: stop at once, and let the shard know how much was heard.

        Args:
            how: The user has said it.
            stop: Whether the device is sent `tts stop`; it may have left its speaking state by itself.
        """
        speech = self.leave()
        if stop:
            self.downlink.stop()
        log.info(how, extra={"turn": speech.turn} if speech else {})

    def leave(self) -> SpokenAnswer | None:
        """Fall silent, and let the shard know how much of its turn was heard; return the answer that was cut off."""
        awaited = self._turn.id if self._turn else ""
        speech = self.silence()
        turn, spoken = (speech.turn, speech.playout.begun) if speech else (awaited, 0)
        if turn and not (speech and speech.own):
            opened = self._transport.opened
            cut = AnswerInterruptedEvent(device=opened.device, session=opened.session, turn=turn, spoken=spoken)
            self._services.outbox.put(opened.shard, cut)
        return speech

    def silence(self) -> SpokenAnswer | None:
        """Fall silent and forget the turn; return the answer that was cut off. The device is sent nothing."""
        speech = self.downlink.silence()
        for dropped in (speech and speech.turn, self._turn and self._turn.id):
            if dropped:
                self._drop(dropped)
        self._turn = None
        return speech

    def check(self, now: float) -> None:
        """Give up a turn of which nothing was heard for too long, or that cannot be spoken."""
        self.downlink.try_again(now)
        speech, turn = self.downlink.speech, self._turn
        has_more = speech is not None and (speech.finished or speech.playout.waiting > 0)
        if self.downlink.lost(now):
            _give_up(self._transport, turn, "no_audio_path")
            if (speech := self.silence()) and not speech.own:
                self._report_done(speech.turn)
            self._listener.resume(now)
        elif turn and not has_more and now - turn.touched > self._limit:
            _give_up(self._transport, turn, "no_worker")
            speaking = self.downlink.speaking
            # Whoever takes the turn up after all learns that nobody waits for it any more.
            self.leave()
            if speaking:
                self.downlink.stop()
            self.apologise("failed", turn.language, now)

    def _drop(self, turn: str) -> None:
        self._dropped.append(turn)
        traced.end(turn)

    def finish(self, speech: SpokenAnswer, now: float) -> None:
        """An answer was spoken to its end, and the device knows."""
        self._drop(speech.turn)
        if not speech.own:
            self._services.traces.note(self._transport.opened.device, "spoke")
            self._report_done(speech.turn)
        if self._turn and (speech.own or self._turn.id == speech.turn):
            self._turn = None
        if not self.replay.keep(speech, now):
            self._listener.resume(now)

    def _report_done(self, turn: str) -> None:
        opened = self._transport.opened
        self._services.outbox.put(
            opened.shard, AnswerDoneEvent(device=opened.device, session=opened.session, turn=turn)
        )


def _give_up(transport: DownlinkTransport, turn: AwaitedTurn | None, why: str) -> None:
    timed.given_up.add(why)
    with transport.fields(turn.id if turn else ""):
        log.warning("turn given up", extra={"reason": _REASONS[why]})
