"""From sentences to a session's packets: voice, playout, encryption."""

import asyncio
import logging
from collections import deque
from typing import Protocol

from fleet.adapters.speech.opus import silence
from fleet.core.playback_gauge import PlaybackGauge
from fleet.core.playout import Playout
from fleet.ground.metrics import turns as timed
from fleet.ground.requester import working_for
from fleet.ground.tracing import turns as traced
from fleet.roles.edge.downlink_transport import DownlinkTransport
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.speaking.speech import SpokenAnswer, synthesise
from fleet.roles.edge.transport.timer_wheel import Timer
from fleet.wire.messages import AnswerStartCommand, AnswerStopCommand, EmotionCommand, SentenceStartCommand

log = logging.getLogger(__name__)

HOLD_SECONDS = 10.0
"""Longest wait for the device's address: a device that receives `tts start` before it sent audio never sends any."""

_MOST_SAID = 4


class AnswerOwner(Protocol):
    """Is notified of the end of answers."""

    def finish(self, speech: SpokenAnswer, now: float) -> None:
        """Take an answer that was spoken to its end, after `tts stop` was sent."""


class Downlink:
    """Speaks to one session, one answer at a time.

    Args:
        transport: To the device.
        services: Of the edge.
        owner: Of the answers.
    """

    __slots__ = (
        "_gauge",
        "_owner",
        "_services",
        "_stop_unsent",
        "_task",
        "_timer",
        "_transport",
        "said",
        "speech",
        "stop_in_doubt",
    )

    def __init__(self, transport: DownlinkTransport, services: EdgeServices, owner: AnswerOwner) -> None:
        self._transport = transport
        self._services = services
        self._owner = owner
        self._timer = Timer()
        self._task: asyncio.Task[object] | None = None
        self.speech: SpokenAnswer | None = None
        """The answer that is being spoken or prepared."""
        self.said: deque[str] = deque(maxlen=_MOST_SAID)
        """The sentences that began last."""
        self._gauge = PlaybackGauge(transport.downlink.frame_ms)
        self._stop_unsent = False
        """Whether `tts stop` could not be sent yet."""
        self.stop_in_doubt = False
        """Whether the device may have missed `tts stop`; False if none was sent."""

    @property
    def speaking(self) -> bool:
        """Whether the device was sent `tts start`, and not yet `tts stop`."""
        return self.speech is not None and self.speech.playout.started

    def begin(self, speech: SpokenAnswer, now: float) -> None:
        """Begin an answer; it replaces one that is still being spoken, without `tts stop` between them."""
        earlier = self.cancel()
        device = earlier.playout.device if earlier else None
        fmt = self._transport.downlink
        filler = silence(fmt.sample_rate, fmt.frame_ms)
        playout = Playout(fmt.frame_ms, filler, device, self._transport.pacing)
        playout.usual.attach(self._transport.sink, self)
        speech.prepare(playout, self._services.counters, now)
        self.speech = speech
        self._gauge = PlaybackGauge(fmt.frame_ms)
        with working_for(self._transport.opened.device):
            self._task = self._services.tasks.start("speech", synthesise(speech, self._transport.agent, fmt, self))
        if playout.started:
            log.info("speech begins")
            self._services.socket.wheel.set(self._timer, now, playout.usual)
        elif not speech.lazy:
            self._send_start(now)

    def retry(self, now: float) -> None:
        """Retry `tts start` or `tts stop`: the device's address was unknown, or the broker was away."""
        speech = self.speech
        if speech and speech.playout.started and not self._timer.tick:
            # It waits for its voice; or a packet has led to an exception, and without its timer it would never end.
            self._services.socket.wheel.set(self._timer, now, speech.playout.usual)
        elif speech and not speech.lazy:
            self._send_start(now)
        elif speech is None and self._stop_unsent:
            self.stop()

    def note_played(self, timestamp: int, now: float) -> None:
        """Take a report that the device plays the packet with this timestamp, in milliseconds.

        The report corrects the model of the device's queue within the bounds of `PlaybackGauge`.
        """
        speech = self.speech
        if speech and speech.playout.started:
            left = self._transport.sent - timestamp // self._transport.downlink.frame_ms
            speech.playout.add_loss(self._gauge.take(left, speech.playout.device.played_at, now))

    def go_on(self, now: float) -> None:
        """Send what was kept while the answer was held."""
        if self.speech:
            self.speech.playout.go_on()
            self._services.socket.wheel.set(self._timer, now, self.speech.playout.usual)

    def cancel(self) -> SpokenAnswer | None:
        """Cancel the answer without `tts stop`; return it."""
        speech = self.speech
        self._services.socket.wheel.cancel(self._timer)
        if self._task:
            self._task.cancel()
        self._task = self.speech = None
        return speech

    def stop(self) -> None:
        """Send `tts stop`."""
        self.stop_in_doubt = True
        self._stop_unsent = not self._transport.send_command(AnswerStopCommand(self._transport.session))

    def timed_out(self, now: float) -> bool:
        """Return whether the answer has waited too long for the device's address or for the broker."""
        speech = self.speech
        if speech is None or speech.lazy or speech.playout.started:
            return False
        return now - speech.begun_at >= HOLD_SECONDS

    def _send_start(self, now: float) -> None:
        speech = self.speech
        if not speech or speech.playout.started or not self._transport.addressed:
            return
        # Firmware discards audio that comes without `tts start` before it.
        if self._transport.send_command(AnswerStartCommand(self._transport.session)):
            log.info("speech begins")
            speech.begun_at = now
            speech.playout.start(now)
            if speech.on_start:
                speech.on_start()
            self.send_emotion()
            self._services.socket.wheel.set(self._timer, now, speech.playout.usual)

    def send_emotion(self) -> None:
        """Send the answer's emotion, if it is not sent yet: after `tts start`, never before it.

        Firmware sets a neutral face on entering idle or listening, one pass of its main loop after the change, and
        leaves the face alone on entering speaking (application.cc, HandleStateChangedEvent): a face that comes before
        `tts start` can be wiped by the state before, one that comes after it stays until the answer ends.
        """
        speech = self.speech
        if speech and speech.emotion and speech.playout.started:
            emotion, speech.emotion = speech.emotion, ""
            self._transport.send_command(EmotionCommand(self._transport.session, emotion))

    def take_packets(self) -> None:
        """Set the timer for new packets of the voice."""
        speech = self.speech
        if not speech:
            return
        playout, wheel = speech.playout, self._services.socket.wheel
        if speech.lazy and playout.queue:
            speech.lazy = False
            self._send_start(wheel.clock())
        if playout.drained or (playout.queue and playout.started):
            wheel.set(self._timer, wheel.clock(), playout.usual)

    def take_step(self, now: float) -> float | None:
        """Do what is due, if it is not a usual packet; return when something is due next."""
        speech = self.speech
        if speech is None:
            return None
        playout = speech.playout
        packet, begins, stop, again = playout.step(now)
        if begins:
            self._begin_sentences(begins, speech)
        if packet is not None:
            self._transport.sink.send(packet)
            # Packets before the first sentence are a filler's.
            if not speech.first_sent and playout.begun:
                _note_first_packet(self._transport, speech, now)
            if playout.queue.room == 1:
                speech.changed.set()
        elif stop:
            self.stop()
            self._finish(speech, now)
        elif again is None and not self.speaking and playout.drained:
            self._finish(speech, now)
        return again

    def _begin_sentences(self, begins: tuple[int, ...], speech: SpokenAnswer) -> None:
        for index in begins:
            text = speech.texts.pop(index)
            self.said.append(text)
            self._transport.send_command(SentenceStartCommand(self._transport.session, text))
        speech.changed.set()

    def _finish(self, speech: SpokenAnswer, now: float) -> None:
        self.cancel()
        with self._transport.fields(speech.turn):
            log.info("speech done")
            self._owner.finish(speech, now)


def _note_first_packet(transport: DownlinkTransport, speech: SpokenAnswer, now: float) -> None:
    speech.first_sent = True
    since = {} if speech.speech_ended_at is None else {"since_end_of_speech": round(now - speech.speech_ended_at, 3)}
    if speech.speech_ended_at is not None:
        timed.e2e_latency.observe(now - speech.speech_ended_at)
        speech.first_audio_ms = round(1000 * (now - speech.speech_ended_at))
    traced.find(speech.turn).add_event("first packet sent")
    with transport.fields(speech.turn):
        log.info("first packet sent", extra=since)
