"""The turns of one session on its edge: awaited from the shard, spoken, ended."""

import logging
from collections import deque
from typing import Literal, Protocol
from uuid import uuid4
from weakref import proxy

from fleet.core.text.phrases import Phrase, phrase
from fleet.ground.errors import FleetError
from fleet.ground.metrics import turns as timed
from fleet.ground.tracing import turns as traced
from fleet.roles.edge.downlink_transport import DownlinkTransport
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.speaking.answer_replay import AnswerReplay
from fleet.roles.edge.speaking.awaited_turn import AwaitedTurn, utterance_of
from fleet.roles.edge.speaking.downlink import Downlink
from fleet.roles.edge.speaking.fillers import Fillers
from fleet.roles.edge.speaking.heard_answer import HeardAnswer
from fleet.roles.edge.speaking.prepared_sentence import PreparedSentence
from fleet.roles.edge.speaking.speech import SpokenAnswer
from fleet.roles.edge.speaking.turn_reports import TurnReports
from fleet.wire.edge_messages import (
    EndAnswerCommand,
    SpeakSentenceCommand,
    StartAnswerCommand,
    TurnProgressCommand,
)
from fleet.wire.messages import TranscriptCommand

log = logging.getLogger(__name__)

TURN_MARGIN = 5.0
"""Seconds after a turn's own limit in which the edge still waits for its shard."""
_REMEMBERED = 32
"""Ended turns of a session whose late commands are still recognised and ignored."""


class TurnListener(Protocol):
    """Is notified when turns end."""

    def start_answer(self, command: StartAnswerCommand, now: float) -> None:
        """Begin an answer."""

    def resume(self, now: float) -> None:
        """Listen again: the server has nothing more to say."""

    def fail(self, name: Phrase) -> None:
        """Apologise: there is no answer."""


class SessionTurns:
    """Asks a session's shard for turns, and speaks its answers.

    Args:
        transport: To the device.
        services: Of the edge.
        listener: Is notified when turns end.
    """

    def __init__(self, transport: DownlinkTransport, services: EdgeServices, listener: TurnListener) -> None:
        self._transport = transport
        self._services = services
        self._listener = listener
        self._turn: AwaitedTurn | None = None
        self.downlink = Downlink(transport, services, proxy(self))
        self.replay = AnswerReplay(self.downlink)
        self._reports = TurnReports(transport, services)
        self._fillers = Fillers(transport, services, self.downlink, listener)
        self._dropped: deque[str] = deque(maxlen=_REMEMBERED)
        self._heard = HeardAnswer()
        self._limit = services.settings.turn_seconds + TURN_MARGIN

    @property
    def busy(self) -> bool:
        """Whether an answer is awaited, prepared or spoken."""
        return self._turn is not None or self.downlink.speech is not None

    async def ask(
        self,
        turn: AwaitedTurn,
        text: str,
        language: str,
        outcome: Literal["understood", "typed"],
        prepared: PreparedSentence | None = None,
    ) -> None:
        """Send the device the text to show, and ask the shard to answer it. An earlier awaited turn ends.

        What was spoken is answered with speech, so the device is told at once: `tts start` and the time that it needs
        pass while the shard works. A typed text waits for the first word of its answer.

        Args:
            turn: The turn's id and times.
            text: What was said or typed.
            language: ISO 639-1 code of the speech, empty if unknown.
            outcome: The outcome of the utterance; it is counted once the shard has the utterance.
            prepared: The first sentence of its answer, if it was prepared.
        """
        if self._turn:
            self._drop(self._turn.id)
        self._turn = turn
        self.replay.forget()
        self._fillers.wait(turn.id, turn.language, turn.progress_at)
        opened = self._transport.opened
        self._transport.send_command(TranscriptCommand(opened.session, text))
        if outcome == "understood":
            with self._transport.fields(turn.id):
                announced = StartAnswerCommand(device=opened.device, session=opened.session, turn=turn.id)
                self.begin(announced, turn.progress_at, prepared)
        utterance = utterance_of(opened, turn, text, language, self._heard)
        try:
            await self._services.inboxes.to_shard(opened.shard, utterance)
        except FleetError as error:
            log.warning("utterance not delivered", extra={"reason": str(error), "kind": type(error).__name__})
            timed.utterances.add("undelivered")
            if self._turn is not turn:
                return  # it was cancelled meanwhile
            # It may have been delivered despite the error, and no answer may follow the apology.
            self._give_way()
            self._listener.fail("failed")
        else:
            timed.utterances.add(outcome)

    def begin(self, command: StartAnswerCommand, now: float, prepared: PreparedSentence | None = None) -> bool:
        """Prepare to speak; return False if the turn has ended already, or its answer has begun before."""
        earlier = self.downlink.speech
        if command.turn in self._dropped:
            return False
        if earlier and earlier.turn == command.turn:
            if self._turn and self._turn.id == command.turn:
                self._turn.progress_at = now
            traced.join(command.turn, command.traceparent)
            return False
        if earlier:
            self._drop(earlier.turn)
            if earlier.playout.drained and not earlier.local:
                self._reports.done(earlier)
        if not self._turn or self._turn.id != command.turn:
            self._turn = AwaitedTurn(command.turn, now, language=self._turn.language if self._turn else "")
        traced.join(command.turn, command.traceparent)
        self._turn.progress_at, speech_ended_at = now, self._turn.speech_ended_at
        self.downlink.begin(SpokenAnswer(command.turn, speech_ended_at, prepared=prepared), now)
        return True

    def note_progress(self, command: TurnProgressCommand, now: float) -> None:
        """Note that the shard works on a turn, though it has no text yet."""
        if self._turn and self._turn.id == command.turn:
            self._turn.progress_at = now
            # A slow tool blocks the device: until its answer the device does not enter its speaking state, and discards
            # audio (contract 5.3.4).
            self._fillers.stop()
            if (speech := self.downlink.speech) and speech.turn == command.turn and not speech.has_text:
                speech.playout.rest()

    def answer_of(self, sentence: SpeakSentenceCommand, now: float) -> SpokenAnswer | None:
        """Return the answer to which a sentence belongs; None if its turn has ended."""
        speech = self.downlink.speech
        if speech and speech.turn == sentence.turn and self._turn:
            self._turn.progress_at = now
            self._turn.language = sentence.language or self._turn.language
            return speech
        self._services.counters["late_sentences"] += 1
        return None

    def end(self, command: EndAnswerCommand, now: float) -> None:
        """Mark a turn's text as complete."""
        speech = self.downlink.speech
        if speech and speech.turn == command.turn:
            speech.end()
        elif self._turn and self._turn.id == command.turn:
            self._drop(command.turn)
            self._turn = None
            self._listener.resume(now)

    def apologise(self, name: Phrase, language: str, now: float) -> None:
        """Speak an apology, unless the server is speaking already."""
        if (speech := self.downlink.speech) and speech.turn not in self._dropped:
            return
        self._services.traces.note(self._transport.opened.device, "sorry", name)
        self._turn = None
        turn, opened = uuid4().hex, self._transport.opened
        speech = SpokenAnswer(turn, local=True, lazy=True)
        self.downlink.begin(speech, now)
        about = {"device": opened.device, "session": opened.session, "turn": turn, "language": language}
        speech.add(SpeakSentenceCommand(index=0, text=phrase(name, language), **about))
        speech.end()

    def interrupt(self, how: Literal["barge-in", "speech aborted", "pressed"], *, stop: bool = True) -> None:
        """Stop the answer because the user wants it, and report to the shard how much of it was spoken.

        Args:
            how: The way in which the user interrupted.
            stop: Whether to send `tts stop`; the device may have left its speaking state by itself.
        """
        speech = self.cancel_and_report()
        if stop:
            self.downlink.stop()
        log.info(how, extra={"turn": speech.turn} if speech else {})

    def cancel_and_report(self, *, withdrawn: bool = False) -> SpokenAnswer | None:
        """Cancel the turn, and report to the shard how much of its answer was spoken; return the answer.

        Args:
            withdrawn: Report that a later turn has the words of this one, because its user went on.
        """
        awaited = self._turn.id if self._turn else ""
        speech = self.cancel()
        turn, spoken = (speech.turn, speech.playout.begun) if speech else (awaited, 0)
        if turn and not (speech and speech.local):
            if withdrawn:
                log.info("utterance withdrawn", extra={"turn": turn})
                self._reports.withdrawn(turn, spoken)
            else:
                self._reports.cut(turn, spoken, speech)
        return speech

    def _give_way(self) -> None:
        """End the turn before an apology; one that was announced and has said nothing becomes the apology."""
        speech, speaking = self.downlink.speech, self.downlink.speaking
        if speech and speaking and not speech.local and not speech.playout.begun:
            self._drop(speech.turn)
            self._reports.cut(speech.turn, 0, speech)
            return
        self.cancel_and_report()
        if speaking:
            self.downlink.stop()

    def cancel(self) -> SpokenAnswer | None:
        """Cancel the turn and its answer, and return the answer; send the device nothing."""
        speech = self.downlink.cancel()
        self._fillers.stop()
        for dropped in (speech and speech.turn, self._turn and self._turn.id):
            if dropped:
                self._drop(dropped)
        self._turn = None
        return speech

    def check(self, now: float) -> None:
        """Give up a turn whose shard sent nothing for too long, or whose answer cannot be sent."""
        self.downlink.retry(now)
        speech, turn = self.downlink.speech, self._turn
        has_more = speech is not None and (speech.finished or len(speech.playout.queue) > 0)
        if self.downlink.timed_out(now):
            self._reports.given_up(turn.id if turn else "", "no_audio_path")
            if (speech := self.cancel()) and not speech.local:
                self._reports.done(speech)
            self._listener.resume(now)
        elif turn and not has_more and now - turn.progress_at > self._limit:
            self._reports.given_up(turn.id, "no_worker")
            # A worker that takes the turn up later must know that the edge has given it up.
            self._give_way()
            self.apologise("failed", turn.language, now)

    def _drop(self, turn: str) -> None:
        """End a turn's trace, and ignore its further commands."""
        self._dropped.append(turn)
        traced.end(turn)

    def finish(self, speech: SpokenAnswer, now: float) -> None:
        """End the turn of an answer that was spoken to its end."""
        self._drop(speech.turn)
        self._heard.note(speech, now)
        if not speech.local:
            self._services.traces.note(self._transport.opened.device, "spoke")
            self._reports.done(speech)
        if self._turn and (speech.local or self._turn.id == speech.turn):
            self._turn = None
        if not self.replay.finish(speech, now):
            self._listener.resume(now)
