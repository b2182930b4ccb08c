"""Speech over an answer in realtime mode: the answer is held, then goes on or is interrupted (docs/adr/0036)."""

import asyncio
import logging

from fleet.core.interruption import INTERRUPTING, QUIET_SECONDS, HeldAnswer, Verdict
from fleet.ground.errors import FleetError
from fleet.ground.metrics import turns as timed
from fleet.ground.requester import working_for
from fleet.roles.edge.downlink_transport import DownlinkTransport
from fleet.roles.edge.listening.recognition import Recognition
from fleet.roles.edge.listening.uplink import Uplink
from fleet.roles.edge.listening.utterance_collector import Utterance
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.speaking.speech import SpokenAnswer
from fleet.roles.edge.speaking.turns import SessionTurns
from fleet.roles.edge.transport.timer_wheel import Timer

log = logging.getLogger(__name__)

HOLD_MS = 120.0
"""Speech over an answer that holds it. As much begins an utterance (`START_MS`), so the hold comes with the utterance's
begin: packets of 60 ms and the detector's delay leave no time to wait for more, if nothing may be sent 350 ms after the
first sound."""
BARGE_IN_MS = 300.0
"""Speech over an answer that interrupts it unjudged, with the sensitivity `high`."""
_POLL_SECONDS = 0.03
_TEXT_SECONDS = 1.0
"""From the begin of a hold until its recognitions are of no use any more."""
_NONE = -1.0
"""In place of milliseconds of speech: none of it was judged."""


class Interruption:
    """Holds the answer of one session while the user speaks over it, and judges the speech.

    Args:
        transport: Names the session in the log.
        services: Of the edge.
        turns: Of the session.
        uplink: Of the session; has the audio of the speech.
        recognition: Of the session.
    """

    def __init__(
        self,
        transport: DownlinkTransport,
        services: EdgeServices,
        turns: SessionTurns,
        uplink: Uplink,
        recognition: Recognition,
    ) -> None:
        self._transport = transport
        self._services = services
        self._turns = turns
        self._uplink = uplink
        self._recognition = recognition
        self._timer = Timer()
        self._task: asyncio.Task[object] | None = None
        self._held: HeldAnswer | None = None
        self._speech: SpokenAnswer | None = None
        """The answer over which the utterance that is under way was spoken, unless that has interrupted it."""
        self._passed_ms: float | None = None
        """Speech of that utterance for which the answer went on; None before."""
        self._ended: tuple[Utterance, SpokenAnswer, HeldAnswer | None] | None = None
        """The newest utterance that was spoken over an answer and has ended, the answer, and whether it holds it."""
        self._voice_at = 0.0

    def take_voice(self, now: float) -> None:
        """Take a frame of speech; hold the answer, if there is enough speech over it."""
        paused, self._voice_at = now - self._voice_at, now
        speech, period = self._turns.downlink.speech, self._uplink.period
        if self._held:
            self._held.voice_at = now
            return
        if not (speech and _is_heard(speech) and period) or self._transport.agent.current.rules.sensitivity == "off":
            return
        collector = period.collector
        if self._passed_ms is not None:
            # The answer went on in spite of this voice; only what follows a pause can hold it again.
            if paused < QUIET_SECONDS:
                return
            collector.mark_overlap()
            self._passed_ms = None
        if self._transport.agent.current.rules.sensitivity == "high":
            if collector.overlap_ms >= BARGE_IN_MS:
                self._interrupt("voice")
        elif collector.overlap_ms >= HOLD_MS:
            speech.playout.hold()
            self._held, self._speech = HeldAnswer(self._transport.agent.current.rules, now, now), speech
            self._services.socket.wheel.set(self._timer, now + _POLL_SECONDS, self)
            with self._transport.fields(speech.turn):
                log.info("answer held")

    def ignores(self, utterance: Utterance) -> bool:
        """Take an utterance that has ended; return whether nothing is left to recognise in it."""
        speech, passed_ms = self._speech, self._passed_ms
        self._ended = (utterance, speech, self._held) if speech else None
        if not self._held:
            self._forget()
        if speech is None:
            least = float("inf") if self._transport.agent.current.rules.sensitivity == "off" else BARGE_IN_MS
            return _is_heard(self._turns.downlink.speech) and utterance.voiced_ms < least
        return passed_ms == utterance.voiced_ms

    def passes_over(self, utterance: Utterance, text: str) -> bool:
        """Take the text of an utterance; return whether the answer over which it was spoken goes on."""
        ended, self._ended = self._ended, None
        if ended is None or ended[0] is not utterance:
            return False
        _, speech, held = ended
        verdict = self._transport.agent.current.rules.judge(text, _said(speech), utterance.voiced_ms)
        if verdict in INTERRUPTING or (held and held is self._held):
            self._settle(verdict, speech, None)
        return verdict not in INTERRUPTING

    def note_text(self, so_far: Utterance, text: str) -> None:
        """Take what was said until a pause, over an answer that is held."""
        if self._held and self._speech:
            verdict = self._transport.agent.current.rules.judge(text, _said(self._speech), so_far.voiced_ms)
            self._held.note_text(verdict, so_far.ended_at)

    def on_timer(self, now: float) -> float | None:
        """Decide on the answer that is held, or find out what is said."""
        held = self._held
        if held is None or self._speech is None or self._speech is not self._turns.downlink.speech:
            # The answer has ended in another way: an abort, a newer answer, the end of the session.
            self.close()
            return None
        period = self._uplink.period
        collector = period.collector if period and period.collector.recording else None
        if verdict := held.decide(now):
            self._settle(verdict, self._speech, collector.voiced_ms if collector else None)
            return None
        # At a pause the text comes by `note_text`: a second recognition would only make the user wait for both.
        if collector and not self._task and not self._recognition.preparing and held.wants_text(now):
            held.texts += 1
            agent, device = self._transport.agent.current, self._transport.opened.device
            so_far = collector.so_far()
            if not self._services.early_work.may_begin(device, agent.asr, now, len(so_far.pcm)):
                return now + _POLL_SECONDS
            with self._transport.fields(), working_for(device):
                self._task = self._services.tasks.start("overlap", self._recognise(held, so_far, now))
        return now + _POLL_SECONDS

    def close(self) -> None:
        """Forget the speech, undecided; an answer that is held goes on."""
        held, speech = self._held, self._speech
        self._stop()
        self._forget()
        self._ended = None
        if held and speech is self._turns.downlink.speech:
            self._turns.downlink.go_on(asyncio.get_running_loop().time())

    async def _recognise(self, held: HeldAnswer, so_far: Utterance, now: float) -> None:
        ended = held.is_quiet(now)
        try:
            async with asyncio.timeout_at(held.held_at + _TEXT_SECONDS):
                transcript = await self._services.early_work.recognise(self._transport.agent.current, so_far.pcm)
        except (FleetError, TimeoutError) as error:
            log.info("overlap not recognised", extra={"kind": type(error).__name__})
        else:
            if transcript and self._held is held and self._speech:
                verdict = self._transport.agent.current.rules.judge(
                    transcript.text, _said(self._speech), so_far.voiced_ms, ended=ended
                )
                held.note_text(verdict, now)
                log.debug("overlap recognised", extra={"pii": {"text": transcript.text}})
        finally:
            if self._held is held:
                self._task = None

    def _settle(self, verdict: Verdict, speech: SpokenAnswer, voiced_ms: float | None) -> None:
        """Interrupt the answer, or let it go on.

        Args:
            verdict: On the speech over it.
            speech: The answer; nothing happens if it is over.
            voiced_ms: Speech of the utterance that is under way; None if it has ended.
        """
        held = self._held
        self._stop()
        if self._turns.downlink.speech is not speech:
            self._forget()
            return
        now = asyncio.get_running_loop().time()
        seconds = {"held_seconds": round(now - held.held_at, 3)} if held else {}
        with self._transport.fields(speech.turn):
            log.info("speech over the answer", extra={"verdict": verdict, **seconds})
        if verdict in INTERRUPTING:
            self._interrupt(verdict)
            return
        timed.interruptions.add(verdict)
        self._turns.downlink.go_on(now)
        if voiced_ms is None:
            self._forget()
        else:
            self._passed_ms = _NONE if verdict == "undecided" else voiced_ms

    def _interrupt(self, verdict: Verdict) -> None:
        timed.interruptions.add(verdict)
        self._forget()
        with self._transport.fields():
            self._turns.interrupt("barge-in")

    def _stop(self) -> None:
        self._services.socket.wheel.cancel(self._timer)
        if self._task:
            self._task.cancel()
        self._held = self._task = None

    def _forget(self) -> None:
        self._speech = self._passed_ms = None


def _is_heard(speech: SpokenAnswer | None) -> bool:
    """Whether an answer has said anything; one that was only announced gives way to what the user adds."""
    return speech is not None and speech.playout.begun > 0


def _said(speech: SpokenAnswer) -> list[str]:
    """Return the sentences of an answer that have begun, the newest last."""
    return [sentence.text for sentence in speech.sentences if sentence.index < speech.playout.begun]
