"""Turn-taking in one session: when the user is listened to, and when not."""

import asyncio
import logging
from uuid import uuid4

from fleet.core.ports import Transcript
from fleet.core.text.phrases import Phrase
from fleet.ground.metrics import turns as timed
from fleet.roles.edge.interjection import CROSSING_SECONDS, Interjection
from fleet.roles.edge.listening.listening_period import SpeechConsumers
from fleet.roles.edge.listening.push_to_talk import ABORTED_SECONDS, GOODBYE_SECONDS, PushToTalk
from fleet.roles.edge.listening.recognition import Recognition
from fleet.roles.edge.listening.silence import SilenceTimeout
from fleet.roles.edge.listening.uplink import Uplink
from fleet.roles.edge.listening.utterance_collector import Utterance
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.speaking.turns import AwaitedTurn, SessionTurns
from fleet.roles.edge.transport.downlink import DownlinkTransport
from fleet.wire.edge_messages import SessionSilentEvent, StartAnswerCommand
from fleet.wire.messages import AudioFormat, ListenMode

log = logging.getLogger(__name__)

BARGE_IN_MS = 300.0
"""Speech over the answer that silences it; less is a cough, or a yes."""


class TurnTaking:
    """Takes turns with the user of one session.

    In auto mode the user is not listened to from the end of an utterance to the end of the answer. In realtime mode the
    device cancels its own echo, so the user is always listened to and may interrupt. With push-to-talk the button
    decides.

    Args:
        transport: To the device.
        services: Of the edge.
        now: When the session was opened.
    """

    def __init__(self, transport: DownlinkTransport, services: EdgeServices, now: float) -> None:
        opened = transport.opened
        self._transport = transport
        self._services = services
        self._recognition = Recognition(transport, services, self)
        self._mode: ListenMode | None = None
        self._always = False
        self.language = opened.language or services.settings.languages.split(",")[0].strip()
        """ISO 639-1 code of the language in which the server apologises."""
        self._press = PushToTalk(transport, services, self)
        uplink = AudioFormat(opened.uplink_rate, opened.uplink_frame_ms)
        self.uplink = Uplink(uplink, services, SpeechConsumers(self, self._recognition, self._press))
        self.turns = SessionTurns(transport, services, self)
        self.interjection = Interjection(self.turns, self.uplink, self._press, self)
        self.silence = SilenceTimeout(now, services.settings.idle_seconds)

    def start_listening(self, mode: ListenMode, now: float) -> None:
        """The microphone is open. Repeated, it changes nothing."""
        self.silence.used = True
        self.silence.stir(now)
        self._press.go_on()
        self.turns.downlink.stop_in_doubt = False
        self._mode = mode
        self._transport.interruptible = mode == "realtime"
        # Where the server is to cancel the echo there is none to do it: its own voice would interrupt it.
        self._always = mode == "realtime" and not self._transport.opened.aec
        speech = self.turns.downlink.speech
        if speech and speech.playout.started and not self._always:
            if mode == "manual":
                self.interjection.begin(now)
                return
            if now - speech.begun_at < CROSSING_SECONDS:
                return
            self.turns.interrupt("barge-in")
        elif speech and speech.own and mode == "manual":
            # A sentence of the server's own about the press before would cut this one off.
            self.turns.silence()
        if mode == "manual":
            self._press.begin(now)
        if self._recognition.running and mode != "manual":
            return
        self.uplink.open(now, pressed=mode == "manual")

    def listen_unasked(self, now: float) -> None:
        """The device's word that it listens was lost, or is late: nobody repeats it, and the user speaks already."""
        if not self.busy:
            with self._transport.fields():
                log.info("listens unasked")
            self.uplink.resume()
            self.start_listening("manual" if self.uplink.pressed else "auto", now)

    def stop_listening(self, now: float) -> None:
        """Push-to-talk was released."""
        self.interjection.forget()
        self._press.end(now)
        self.uplink.stop(now)
        self._mode, self._always = None, False

    def abort(self, now: float) -> None:
        """The user wants silence, and perhaps to say something."""
        self.interjection.forget()
        self._recognition.cancel()
        self.turns.interrupt("speech aborted")
        self.uplink.hold()
        self.resume(now, ABORTED_SECONDS)

    def take_question(self, text: str, now: float) -> None:
        """The user typed a question: nothing of what was said, or is being said, counts any more."""
        self.silence.used = True
        self.silence.stir(now)
        self._recognition.cancel()
        speaking = self.turns.downlink.speaking
        if self.turns.busy:
            self.turns.leave()
        if speaking:
            self.turns.downlink.stop()
        if not self._always:
            self.uplink.shut()
        turn = AwaitedTurn(uuid4().hex, now, language=self.language)
        self._services.tasks.start("typed question", self.turns.ask(turn, text, "", "typed"))

    def begin_speech(self, command: StartAnswerCommand, now: float) -> None:
        """An answer begins."""
        self._transport.loss = self.uplink.jitter.loss
        if not self.turns.begin(command, now):
            return
        self.interjection.forget()
        if not self._always:
            self.uplink.shut()
        elif period := self.uplink.period:
            period.collector.mark_overlap()

    @property
    def busy(self) -> bool:
        """Whether an utterance is being recognised, or its answer awaited or spoken."""
        return self.turns.busy or self._recognition.running

    def check(self, now: float) -> None:
        """Look after what nothing else will end."""
        self.turns.check(now)
        self.interjection.check(now)
        if self.busy:
            self.silence.stir(now)
        if reason := self.silence.end(now):
            opened = self._transport.opened
            with self._transport.fields():
                log.info("session silent", extra={"reason": reason})
            self._services.outbox.put(
                opened.shard, SessionSilentEvent(device=opened.device, session=opened.session, reason=reason)
            )

    def close(self) -> None:
        """Fall silent and forget everything."""
        self._press.go_on()
        self._recognition.cancel()
        self.turns.leave()
        self.uplink.close()

    def take_voice(self, now: float) -> None:
        """The user speaks; over the answer for long enough, it silences it."""
        self.silence.stir(now)
        period = self.uplink.period
        if self._always and self.turns.downlink.speaking and period and period.collector.overlap_ms >= BARGE_IN_MS:
            with self._transport.fields():
                self.turns.interrupt("barge-in")

    def take_utterance(self, utterance: Utterance, now: float) -> None:
        """Recognise what the user said; nothing more is heard meanwhile, unless the user always is."""
        if self._always and self.turns.downlink.speaking and utterance.voiced_ms < BARGE_IN_MS:
            self._services.counters["coughs"] += 1
            return
        with self._transport.fields():
            seconds = {"speech_seconds": round(utterance.voiced_ms / 1000, 2)}
            self._services.traces.note(self._transport.opened.device, "heard")
            timed.end_of_turn_delay.observe(now - utterance.ended_at)
            log.info("utterance ended", extra={**seconds, "endpoint_seconds": round(now - utterance.ended_at, 3)})
            if not self._always:
                self.uplink.hold()
            self._recognition.start(utterance)

    async def take_transcript(self, utterance: Utterance, transcript: Transcript) -> None:
        """Ask the session's shard what to answer, if anything was understood."""
        text = transcript.text.strip()
        if not text:
            timed.utterances.add("empty")
            if self._mode in ("auto", "realtime") and self.uplink.gate == "held":
                self.uplink.resume()
            elif self._mode is None and self.uplink.pressed:
                self._press.answer_silence()
            return
        self._services.traces.note(self._transport.opened.device, "understood")
        self.language = transcript.language or self.language
        if not self._always and self._mode is not None:
            self.uplink.shut()
        turn = AwaitedTurn(uuid4().hex, _now(), utterance.ended_at, self.language)
        await self.turns.ask(turn, text, transcript.language, "understood")

    def fail(self, name: Phrase) -> None:
        """Say why there is no answer; the user is not listened to meanwhile."""
        now = _now()
        self.turns.apologise(name, self.language, now)
        if not self._always:
            self.uplink.shut()

    def resume(self, now: float, wait: float = GOODBYE_SECONDS) -> None:
        """The server has nothing more to say.

        Args:
            now: The time.
            wait: Seconds in which a device whose press is over may still say that it listens again.
        """
        self.silence.stir(now)
        if self.turns.busy or self._recognition.running:
            return
        if self.interjection.crossed:
            # The answer went on to its end, and the device is idle after it.
            self.interjection.forget()
            self._mode = None
        if self._mode in ("auto", "realtime"):
            self.uplink.open(now, pressed=False)
            if self._transport.opened.aec:
                self.uplink.settle(now)
            return
        if self.uplink.gate == "shut":
            self.uplink.hold()
        if self._mode is None and self.uplink.pressed:
            self._press.finish(wait)


def _now() -> float:
    return asyncio.get_running_loop().time()
