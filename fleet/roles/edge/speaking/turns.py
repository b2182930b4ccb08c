"""The turns of one session as its edge sees them: awaited from the shard, spoken, over."""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal
from uuid import uuid4

from fleet.core.text.phrases import Phrase, phrase
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
)

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


class SessionTurns:
    """Takes what a shard says of a session's turns, and speaks it.

    Args:
        line: To the device.
        services: Of the edge.
        on_over: Called with `now` when the server has nothing more to say.
    """

    def __init__(self, line: DownlinkTransport, services: EdgeServices, on_over: Callable[[float], None]) -> None:
        self._line = line
        self._services = services
        self._on_over = on_over
        self._turn: AwaitedTurn | None = None
        self.downlink = Downlink(line, services, self._spoken)
        self.missed = AnswerReplay(self.downlink)
        self._dropped: deque[str] = deque(maxlen=_REMEMBERED)
        self._limit = services.settings.turn_seconds + TURN_MARGIN

    @property
    def busy(self) -> bool:
        """Whether an answer is awaited, prepared or spoken."""
        return self._turn is not None or self.downlink.speech is not None

    def expect(self, turn: AwaitedTurn) -> None:
        """The user said something; its shard is about to answer. Whatever was awaited before is over."""
        if self._turn:
            self._drop(self._turn.id)
        self._turn = turn
        self.missed.forget()

    def begin(self, mail: StartAnswerCommand, now: float) -> bool:
        """Prepare to speak; False when the turn is over already, or was begun before."""
        earlier = self.downlink.speech
        if mail.turn in self._dropped or (earlier and earlier.turn == mail.turn):
            return False
        if earlier:
            self._drop(earlier.turn)
            if earlier.playout.drained and not earlier.own:
                self._tell_done(earlier.turn)
        if not self._turn or self._turn.id != mail.turn:
            self._turn = AwaitedTurn(mail.turn, now, language=self._turn.language if self._turn else "")
        traced.join(mail.turn, mail.traceparent)
        self._turn.touched, since = now, self._turn.since
        self.downlink.begin(lambda playout: SpokenAnswer(mail.turn, playout, since), now)
        return True

    def touch(self, mail: TurnProgressCommand, now: float) -> None:
        """The shard goes on with a turn, though it has nothing to say yet."""
        if self._turn and self._turn.id == mail.turn:
            self._turn.touched = now

    def add(self, mail: SpeakSentenceCommand, now: float) -> None:
        """Speak a sentence of the current turn."""
        speech = self.downlink.speech
        if speech and speech.turn == mail.turn and self._turn:
            self._turn.touched = now
            self._turn.language = mail.language or self._turn.language
            self.downlink.add(mail)
        else:
            self._services.counters["late_sentences"] += 1

    def end(self, mail: EndAnswerCommand, now: float) -> None:
        """The turn's text is complete."""
        speech = self.downlink.speech
        if speech and speech.turn == mail.turn:
            speech.end()
        elif self._turn and self._turn.id == mail.turn:
            self._drop(mail.turn)
            self._turn = None
            self._on_over(now)

    def apologise(self, name: Phrase, language: str, now: float) -> None:
        """Say that something went wrong; nothing when the server is speaking already."""
        self._turn = None
        if self.downlink.speech:
            return
        turn = uuid4().hex
        self.downlink.begin(lambda playout: SpokenAnswer(turn, playout, own=True, lazy=True), now)
        opened = self._line.opened
        self._services.traces.note(opened.device, "sorry", name)
        text = phrase(name, language)
        self.downlink.add(
            SpeakSentenceCommand(
                device=opened.device, session=opened.session, turn=turn, index=0, text=text, language=language
            )
        )
        if self.downlink.speech:
            self.downlink.speech.end()

    def interrupt(self, how: Literal["barge-in", "speech aborted", "pressed"], *, tell: bool = True) -> None:
        """The user wants silence: stop at once and tell the device so, whatever it was doing, and the shard.

        Args:
            how: The user has said it.
            tell: Whether the device is told; it may have left its speaking state by itself.
        """
        speech = self.leave()
        if tell:
            self.downlink.stop()
        log.info(how, extra={"turn": speech.turn} if speech else {})

    def leave(self) -> SpokenAnswer | None:
        """Fall silent, and tell the shard how much of its turn was heard; return the answer that was cut off."""
        awaited = self._turn.id if self._turn else ""
        speech = self.silence()
        turn, spoken = (speech.turn, speech.playout.begun) if speech else (awaited, 0)
        if turn and not (speech and speech.own):
            opened = self._line.opened
            cut = AnswerInterruptedEvent(device=opened.device, session=opened.session, turn=turn, spoken=spoken)
            self._services.tell(opened.shard, cut)
        return speech

    def silence(self) -> SpokenAnswer | None:
        """Fall silent and forget the turn; return the answer that was cut off. The device is not told."""
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
        if self.downlink.lost(now):
            _give_up(self._line, turn, "no_audio_path")
            if (speech := self.silence()) and not speech.own:
                self._tell_done(speech.turn)
            self._on_over(now)
        elif turn and not (speech and (speech.finished or speech.playout.waiting)) and now - turn.touched > self._limit:
            _give_up(self._line, turn, "no_worker")
            speaking = self.downlink.speaking
            # Whoever takes the turn up after all is told that nobody waits for it any more.
            self.leave()
            if speaking:
                self.downlink.stop()
            self.apologise("failed", turn.language, now)

    def _drop(self, turn: str) -> None:
        self._dropped.append(turn)
        traced.end(turn)

    def _spoken(self, speech: SpokenAnswer, now: float) -> None:
        self._drop(speech.turn)
        if not speech.own:
            self._services.traces.note(self._line.opened.device, "spoke")
            self._tell_done(speech.turn)
        if self._turn and (speech.own or self._turn.id == speech.turn):
            self._turn = None
        if not self.missed.keep(speech, now):
            self._on_over(now)

    def _tell_done(self, turn: str) -> None:
        opened = self._line.opened
        self._services.tell(opened.shard, AnswerDoneEvent(device=opened.device, session=opened.session, turn=turn))


def _give_up(line: DownlinkTransport, turn: AwaitedTurn | None, why: str) -> None:
    timed.given_up.add(why)
    with line.fields(turn.id if turn else ""):
        log.warning("turn given up", extra={"reason": _REASONS[why]})
