"""The end of a session's utterances: judge each pause, prepare an answer, commit or withdraw it."""

import asyncio
import logging
from typing import Protocol

from fleet.adapters.contained import has_room
from fleet.core.ports import ASR_RATE
from fleet.core.turn_end import TurnEnd
from fleet.ground.errors import FleetError
from fleet.ground.requester import working_for
from fleet.roles.edge.downlink_transport import DownlinkTransport
from fleet.roles.edge.listening.listening_period import ListeningPeriod
from fleet.roles.edge.listening.recognition import EarlyRecognition, Recognition
from fleet.roles.edge.listening.tentative_turns import TentativeTurns
from fleet.roles.edge.listening.utterance_collector import Utterance, UtteranceCollector
from fleet.roles.edge.services import EdgeServices

log = logging.getLogger(__name__)

REJOIN_SECONDS = 1.0
"""Where the microphone stays open, speech this soon after an utterance belongs to it: the user had only paused."""
REJOIN_MS = 300.0
"""Speech that shows that the user went on; less is a cough."""


REJOINED_BYTES = 30 * ASR_RATE * 2
"""Of a longer utterance what follows is one of its own: speech without end would be recognised twice."""
OVERLAP_PAUSE_MS = 120.0
"""Silence after which speech over an answer is judged: what is said there is short, and its first syllable alone may
read as a word that interrupts."""


class OverlapTexts(Protocol):
    """Judges what is said over an answer."""

    def note_text(self, so_far: Utterance, text: str) -> None:
        """Take what was said until a pause."""


class AnswerState(Protocol):
    """Knows whether there is an answer."""

    overlap: OverlapTexts

    @property
    def busy(self) -> bool:
        """Whether an utterance is being recognised, or its answer awaited or spoken."""


class TurnEnding:
    """Ends the utterances of one session.

    At a pause the turn detector and the recogniser work side by side, and `TurnEnd` decides with their verdicts. Until
    the commit nothing is published, and voice withdraws what was prepared.

    Args:
        transport: Names the session.
        services: Of the edge.
        recognition: Of the session.
        answers: Of the session. Over an answer nothing is prepared: most of what is said there is no question.
    """

    def __init__(
        self, transport: DownlinkTransport, services: EdgeServices, recognition: Recognition, answers: AnswerState
    ) -> None:
        self._transport = transport
        self._services = services
        self.recognition = recognition
        self._answers = answers
        settings = transport.agent.settings
        self._rule = TurnEnd(settings.endpoint_ms, settings.endpoint_max_ms)
        self._judging: asyncio.Task[object] | None = None
        self._judged_ms = 0.0
        self._deferred = False
        self._answered: tuple[Utterance, float] | None = None
        self.tentative = TentativeTurns(transport, services)

    def pause(self, so_far: Utterance, period: ListeningPeriod) -> None:
        """Judge a pause; with push-to-talk only recognise what was said until it."""
        pressed = period.collector.pressed
        if not pressed and so_far.voiced_ms == self._judged_ms:
            # The silence was broken by a sound that is no speech.
            return
        if not pressed and self._answers.busy and period.collector.silence_ms < OVERLAP_PAUSE_MS:
            self._deferred = True
            return
        self._stop()
        settings = self._transport.agent.settings
        self._rule.set_waits(settings.endpoint_ms, settings.endpoint_max_ms)
        if not pressed:
            self._judged_ms = so_far.voiced_ms
        device, now = self._transport.opened.device, asyncio.get_running_loop().time()
        asr, size = self._transport.agent.current.asr, len(so_far.pcm)
        if not self._services.early_work.may_begin(device, asr, now, size):
            self._rule.leave_unjudged()
            return
        early = self.recognition.prepare(so_far)
        if not pressed:
            with self._transport.fields(), working_for(device):
                self._judging = self._services.tasks.start("turn end", self._judge(so_far, early, period))

    def note_voice(self) -> None:
        """Take note of speech: what the last pause said is void."""
        self._stop()
        self.recognition.drop_early()
        if self.tentative.turn:
            self._rule.go_on()
            self.tentative.withdraw()

    def is_over(self, period: ListeningPeriod) -> bool:
        """Act on the length of the silence; return whether it has ended the utterance, which must be taken then."""
        if self._deferred and period.collector.silence_ms >= OVERLAP_PAUSE_MS:
            self._deferred = False
            self.pause(period.collector.so_far(), period)
        match self._rule.decide(period.collector.silence_ms):
            case "tentative" if self.tentative.turn is None and not self._answers.busy:
                # An answer to the end alone would not be the answer to the whole.
                if self.recognition.prepared_whole and self._may_prepare():
                    self.tentative.begin(self._rule.note_tentative())
            case "commit":
                self.end()
                return True
            case "keep":
                self.end()
                period.put_back()
        return False

    def end(self) -> None:
        """Note that the utterance is over."""
        self.tentative.commit()
        self.drop()

    def drop(self) -> None:
        """Forget the utterance: it is over, or nobody listens any more."""
        self._rule.begin()  # first: it learns from the text, which `_stop` forgets
        self._stop()
        self.tentative.withdraw()
        self._judged_ms = 0.0

    def note_answered(self, utterance: Utterance, now: float) -> None:
        """Note that the shard is asked to answer an utterance."""
        self._answered = utterance, now

    def rejoin(self, collector: UtteranceCollector, now: float) -> bool:
        """Put the last utterance before the one that is under way, if that one began right after it.

        Returns:
            Whether it did so: the answer to the last utterance is void.
        """
        if self._answered is None or collector.voiced_ms < REJOIN_MS:
            return False
        (utterance, at), self._answered = self._answered, None
        if len(utterance.pcm) > REJOINED_BYTES:
            return False
        if now - at > REJOIN_SECONDS + collector.voiced_ms / 1000:
            return False
        collector.rejoin(utterance)
        self._rule.go_on()
        return True

    def _may_prepare(self) -> bool:
        now = asyncio.get_running_loop().time()
        return self._services.early_work.may_prepare(self._transport.opened.device, now)

    async def _judge(self, so_far: Utterance, early: EarlyRecognition | None, period: ListeningPeriod) -> None:
        async with asyncio.TaskGroup() as group:
            if has_room(self._services.turn_detector):
                group.create_task(self._take_sound(so_far.pcm, period), name="sound of the pause")
            group.create_task(self._take_text(so_far, early, period), name="text of the pause")

    async def _take_sound(self, pcm: bytes, period: ListeningPeriod) -> None:
        try:
            probability = await self._services.turn_detector.finished(pcm)
        except FleetError as error:
            log.debug("pause not judged", extra={"reason": str(error)})
            return
        log.debug("pause judged", extra={"probability": round(probability, 3)})
        self._rule.judge(probability)
        self._check(period)

    async def _take_text(self, so_far: Utterance, early: EarlyRecognition | None, period: ListeningPeriod) -> None:
        transcript = await asyncio.shield(early.outcome) if early else None
        if early and early.skipped:
            self._rule.leave_unjudged()
        self._rule.read(transcript)
        if transcript:
            self._answers.overlap.note_text(so_far, transcript.text)
        self._check(period)

    def _check(self, period: ListeningPeriod) -> None:
        if not period.closed and period.collector.recording and self.is_over(period):
            period.commit()

    def _stop(self) -> None:
        self._deferred = False
        self._rule.note_voice()
        if self._judging:
            self._judging.cancel()
            self._judging = None
