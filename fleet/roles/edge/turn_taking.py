"""Turn-taking in one session: when the edge listens and when the server speaks."""

import asyncio
import logging
from uuid import uuid4
from weakref import proxy

from fleet.core.own_words import is_own
from fleet.core.ports import Transcript
from fleet.core.reference import EchoReference
from fleet.core.silence import SilenceTimeout
from fleet.core.text.phrases import Phrase
from fleet.ground.metrics import turns as timed
from fleet.roles.edge.downlink_transport import DownlinkTransport
from fleet.roles.edge.greeting import Greeting
from fleet.roles.edge.interruption import Interruption
from fleet.roles.edge.listening.listening_period import SpeechConsumers
from fleet.roles.edge.listening.push_to_talk import ABORTED_SECONDS, GOODBYE_SECONDS, PushToTalk
from fleet.roles.edge.listening.recognition import Recognition
from fleet.roles.edge.listening.turn_ending import TurnEnding
from fleet.roles.edge.listening.uplink import Uplink
from fleet.roles.edge.listening.utterance_collector import Utterance
from fleet.roles.edge.manual_interruption import CROSSING_SECONDS, ManualInterruption
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.speaking.awaited_turn import AwaitedTurn
from fleet.roles.edge.speaking.turns import SessionTurns
from fleet.wire.edge_messages import OpenSessionCommand, SessionSilentEvent, StartAnswerCommand
from fleet.wire.messages import AudioFormat, ListenMode

log = logging.getLogger(__name__)


class TurnTaking:
    """Decides in one session when the edge listens and when the server speaks.

    In auto mode the edge does not listen from the end of an utterance to the end of the answer. In realtime mode the
    device cancels its own echo, or the edge does, so the edge always listens, and the user may interrupt. With
    push-to-talk the button decides.

    Args:
        transport: To the device.
        services: Of the edge.
        now: When the session was opened.
    """

    def __init__(self, transport: DownlinkTransport, services: EdgeServices, now: float) -> None:
        opened = transport.opened
        # Its parts know it weakly, so that a closed session is freed at once. A circle of references would wait for the
        # garbage collector, which took a third of the edge's CPU time of hellos and goodbyes.
        session: TurnTaking = proxy(self)
        self._transport = transport
        self._services = services
        self.ending = TurnEnding(transport, services, Recognition(transport, services, session), session)
        self.mode: ListenMode | None = None
        """The mode of the newest `listen start`; None after `listen stop`."""
        self.continuous = False
        """Whether the edge also listens during answers."""
        self._press = PushToTalk(transport, services, session)
        reference = transport.reference = _reference(opened, services)
        uplink = AudioFormat(opened.uplink_rate, opened.uplink_frame_ms)
        consumers = SpeechConsumers(session, self.ending, self._press, transport.agent, reference)
        self.uplink = Uplink(uplink, services, consumers)
        self.turns = SessionTurns(transport, services, session)
        self.overlap = Interruption(transport, services, self.turns, self.uplink, self.ending.recognition)
        self.manual_interruption = ManualInterruption(self.turns, self.uplink, self._press, session)
        self.silence = SilenceTimeout(now)
        self._greeting = Greeting(transport, session)

    def start_listening(self, mode: ListenMode, now: float) -> None:
        """Handle `listen start`; a repeated one changes nothing."""
        self.silence.used = True
        self.silence.reset(now)
        self._press.cancel_goodbye()
        self.turns.downlink.stop_in_doubt = False
        self.mode = mode
        self._transport.interruptible = mode == "realtime"
        # A device with `aec` expects the server to cancel the echo. Without the extra `aec` its microphone picks up the
        # answer, and listening during an answer would interrupt it.
        self.continuous = mode == "realtime" and not self._transport.echoes
        speech = self.turns.downlink.speech
        if speech and speech.playout.started and not self.continuous:
            if mode == "manual":
                self.manual_interruption.press(now)
                return
            # Of an answer that has said nothing, the device cannot have heard the end: this is about the answer before
            # it, and late. Whoever stops an answer sends `abort`.
            if now - speech.begun_at < CROSSING_SECONDS or not speech.playout.begun:
                return
            self.turns.interrupt("barge-in")
        elif speech and speech.local and mode == "manual":
            # An apology for the press before must not interrupt this press.
            self.turns.cancel()
        if mode == "manual":
            self._press.begin(now)
        if self.ending.recognition.running and mode != "manual":
            return
        self.uplink.open(now, pressed=mode == "manual")
        self._greeting.speak_once(now)

    def infer_listening(self, now: float) -> None:
        """Listen without `listen start`: it was lost or is late, devices do not repeat it, and audio arrives."""
        if not self.busy:
            with self._transport.fields():
                log.info("listening begins without listen start")
            self.uplink.resume()
            self.start_listening("manual" if self.uplink.pressed else "auto", now)

    def stop_listening(self, now: float) -> None:
        """Handle `listen stop`: push-to-talk was released."""
        self.manual_interruption.reset()
        self.overlap.close()
        self._press.end(now)
        self.uplink.stop(now)
        self.mode, self.continuous = None, False

    def abort(self, now: float) -> None:
        """Handle `abort`: stop the answer, and wait for a possible `listen start`."""
        self.manual_interruption.reset()
        self.overlap.close()
        self.ending.recognition.cancel()
        self.turns.interrupt("speech aborted")
        self.uplink.hold()
        self.resume(now, ABORTED_SECONDS)

    def take_question(self, text: str, now: float) -> None:
        """Ask a typed question; cancel what is being recognised or spoken."""
        self.silence.used = True
        self.silence.reset(now)
        self.overlap.close()
        self.ending.recognition.cancel()
        speaking = self.turns.downlink.speaking
        if self.turns.busy:
            self.turns.cancel_and_report()
        if speaking:
            self.turns.downlink.stop()
        if not self.continuous:
            self.uplink.shut()
        turn = AwaitedTurn(uuid4().hex, now, language=self._transport.agent.language)
        self._services.tasks.start("typed question", self.turns.ask(turn, text, "", "typed"))

    def start_answer(self, command: StartAnswerCommand, now: float) -> None:
        """Begin an answer."""
        self._transport.loss = self.uplink.jitter.loss
        if command.agent is not None:
            # The edge was told of a change; the message may have been lost.
            self._transport.agent.adopt(command.agent)
        if self.turns.begin(command, now):
            self.manual_interruption.reset()
            self.uplink.yield_floor(interruptible=self.continuous)

    @property
    def busy(self) -> bool:
        """Whether an utterance is being recognised, or its answer awaited or spoken."""
        return self.turns.busy or self.ending.recognition.running

    def check(self, now: float) -> None:
        """Check time limits; ask the shard to end a silent session."""
        self.turns.check(now)
        if self._transport.reference:
            self._transport.reference.check(now, speaking=self.turns.downlink.speaking)
        self.manual_interruption.check(now)
        if self.busy:
            self.silence.reset(now)
        if reason := self.silence.reason_to_end(now, self._transport.agent.settings.idle_seconds):
            opened = self._transport.opened
            with self._transport.fields():
                log.info("session silent", extra={"reason": reason})
            self._services.outbox.put(
                opened.shard, SessionSilentEvent(device=opened.device, session=opened.session, reason=reason)
            )

    def close(self) -> None:
        """Stop everything; send nothing to the device."""
        self._press.cancel_goodbye()
        self.overlap.close()
        self.ending.recognition.cancel()
        self.turns.cancel_and_report()
        self.uplink.close()
        self._transport.agent.listener = None

    def take_voice(self, now: float) -> None:
        """Note that the user speaks, perhaps over an answer."""
        self.silence.reset(now)
        self._greeting.give_way()
        period = self.uplink.period
        if self.continuous and period and self.ending.rejoin(period.collector, now):
            self.overlap.close()
            with self._transport.fields():
                if (speech := self.turns.cancel_and_report(withdrawn=True)) and speech.playout.started:
                    self.turns.downlink.stop()
        elif self.continuous:
            self.overlap.take_voice(now)

    def take_utterance(self, utterance: Utterance, now: float) -> None:
        """Recognise an utterance; stop listening, unless the mode is realtime."""
        if self.continuous and self.overlap.ignores(utterance):
            self._services.counters["coughs"] += 1
            return
        if self._services.utterances.take(self._transport.opened.device, now):
            timed.utterances.add("too_often")
            self.ending.recognition.drop_early()
            _go_on(self.mode, self.uplink, self._press)
            return
        with self._transport.fields():
            seconds = {"speech_seconds": round(utterance.voiced_ms / 1000, 2)}
            self._services.traces.note(self._transport.opened.device, "heard")
            timed.end_of_turn_delay.observe(now - utterance.ended_at)
            log.info("utterance ended", extra={**seconds, "endpoint_seconds": round(now - utterance.ended_at, 3)})
            if not self.continuous:
                self.uplink.hold()
            self.ending.recognition.start(utterance)

    async def take_transcript(self, utterance: Utterance, transcript: Transcript) -> None:
        """Send a transcript to the session's shard, if it is not empty."""
        text = transcript.text.strip()
        if self.overlap.passes_over(utterance, text):
            timed.utterances.add("passed_over")
            return
        reference = self._transport.reference
        if reference and reference.echo_at >= utterance.began_at and is_own(text, self.turns.downlink.said):
            self._services.counters["own_words"] += 1
            text = ""
        if not text:
            timed.utterances.add("empty")
            _go_on(self.mode, self.uplink, self._press)
            return
        self._services.traces.note(self._transport.opened.device, "understood")
        agent = self._transport.agent
        agent.expected = transcript.language
        agent.language = transcript.language or agent.language
        now, begun = _now(), self.ending.tentative.take(text)
        self.ending.note_answered(utterance, now)
        self._transport.loss = self.uplink.jitter.loss
        self.manual_interruption.reset()
        self.uplink.yield_floor(interruptible=self.continuous)
        turn = AwaitedTurn(
            begun.id if begun else uuid4().hex,
            now,
            utterance.ended_at,
            agent.language,
            utterance.voiced_ms,
            utterance.began_at,
        )
        await self.turns.ask(turn, text, transcript.language, "understood", begun.sentence if begun else None)

    def fail(self, name: Phrase) -> None:
        """Apologise; stop listening, unless the mode is realtime."""
        now = _now()
        self.turns.apologise(name, self._transport.agent.language, now)
        if not self.continuous:
            self.uplink.shut()

    def resume(self, now: float, wait: float = GOODBYE_SECONDS) -> None:
        """Listen again if nothing is awaited or spoken and the mode asks for it.

        Args:
            now: The time.
            wait: After push-to-talk: seconds for a new `listen start` before the session gets a goodbye.
        """
        self.silence.reset(now)
        if self.turns.busy or self.ending.recognition.running:
            return
        if self.manual_interruption.crossed:
            # The answer was spoken to its end; after it the device is idle.
            self.manual_interruption.reset()
            self.mode = None
        if self.mode in ("auto", "realtime"):
            self.uplink.open(now, pressed=False)
            if self._transport.echoes:
                self.uplink.settle(now)
            return
        if self.uplink.gate == "shut":
            self.uplink.hold()
        if self.mode is None and self.uplink.pressed:
            self._press.finish(wait)


def _go_on(mode: ListenMode | None, uplink: Uplink, press: PushToTalk) -> None:
    """Go on after an utterance that has no answer."""
    if mode in ("auto", "realtime") and uplink.gate == "held":
        uplink.resume()
    elif mode is None and uplink.pressed:
        press.answer_silent_press()


def _reference(opened: OpenSessionCommand, services: EdgeServices) -> EchoReference | None:
    """Return what keeps the packets for the cancellation of a device's echo; None if the server does not cancel it."""
    if not opened.aec:
        return None
    # Firmware reports one played packet with each frame of its microphone, so both must be equally long.
    cancelled = services.audio_input.echo is not None and opened.uplink_frame_ms == opened.downlink_frame_ms
    log.info("device expects echo cancellation", extra={"cancelled": cancelled, "session": opened.session})
    return EchoReference(opened.downlink_frame_ms) if cancelled else None


def _now() -> float:
    return asyncio.get_running_loop().time()
