"""The way from a session's packets to utterances: order, gate, listening period."""

from collections.abc import Sequence
from typing import Literal

from fleet.core.endpointing import LONGEST_MS
from fleet.ground.metrics import audio
from fleet.roles.edge.listening.burst import Burst
from fleet.roles.edge.listening.jitter_buffer import JitterBuffer
from fleet.roles.edge.listening.listening_period import ListeningPeriod, SpeechConsumers
from fleet.roles.edge.listening.preroll_buffer import PrerollBuffer
from fleet.roles.edge.listening.utterance_collector import UtteranceCollector
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.transport.timer_wheel import Timer
from fleet.wire import toc
from fleet.wire.messages import AudioFormat

SETTLE_SECONDS = 0.1
"""After a wake word's messages: the rest of its audio may still be under way, the microphone's comes later."""
GRACE_SECONDS = 0.2
"""After push-to-talk was released: up to four packets may follow."""
CATCH_UP_SECONDS = 1.0
"""Longest time that the audio input may then lag behind."""
_POLL_SECONDS = 0.02

Gate = Literal["held", "open", "shut"]


class Uplink:
    """Hears one session.

    The gate says what becomes of packets: `held` for whoever listens next, heard (`open`), or ignored (`shut`).

    Args:
        uplink: Format of the packets.
        services: Of the edge.
        consumers: Act on what was heard.
    """

    def __init__(self, uplink: AudioFormat, services: EdgeServices, consumers: SpeechConsumers) -> None:
        self._format = uplink
        self._services = services
        self._consumers = consumers
        self.burst = Burst(uplink.frame_ms)
        self.jitter = JitterBuffer()
        """Puts packets in order, and knows how many were lost."""
        self._preroll = PrerollBuffer(uplink.frame_ms)
        self.period: ListeningPeriod | None = None
        """The listening period; None while nobody listens."""
        self._timer = Timer(self)
        self._deadline = 0.0
        self._settles_at: float | None = None
        self.pressed = False
        """Whether only `stop` ends an utterance."""
        self.gate: Gate = "held"

    def push(self, sequence: int, payload: bytes, now: float) -> None:
        """Take one packet that was admitted; without a payload it is a silent frame that has no number."""
        if not payload:
            # Nothing shows that the device has sent it: it opens nothing, and lengthens a press by a little at most.
            if self.period and self.period.may_pad():
                self._hear(None, now)
            else:
                self._services.counters["unwanted"] += 1
            return
        self.burst.add(now)
        for released in self.jitter.push(sequence, payload, now):
            self._hear(released, now)

    def rejoin(self, packets: list[tuple[int, bytes]], now: float) -> None:
        """Take packets that were proved together, in order; the stream may have gone back to lower numbers."""
        for released in self.jitter.rejoin(packets[0][0]):
            self._hear(released, now)
        for sequence, payload in packets:
            self.push(sequence, payload, now)

    def settle(self, now: float) -> None:
        """What was sent until now (a wake word, our own voice) is no part of what the user says next."""
        self._settles_at = now + SETTLE_SECONDS
        self._preroll.take()
        if self.gate == "open":
            self._listen([])

    def open(self, now: float, *, pressed: bool) -> None:
        """Listen; a period of the same kind that is under way goes on.

        Args:
            now: The time.
            pressed: Push-to-talk: only `stop` ends the utterance.
        """
        self._services.socket.wheel.cancel(self._timer)
        settling = self._settles_at is not None
        if settling:
            self._settles_at = now + SETTLE_SECONDS
        if self.gate == "open" and self.pressed == pressed:
            return
        self.pressed = pressed
        recent = self._preroll.take_recent(now, self._services.stalls.waited(now))
        self._listen([] if settling else recent)

    def resume(self, *, pressed: bool | None = None) -> None:
        """Listen, with all that came meanwhile.

        Args:
            pressed: Push-to-talk; as before if it is not said.
        """
        self.pressed = self.pressed if pressed is None else pressed
        self._listen(self._preroll.take())

    def hold(self) -> None:
        """Listen to nothing; keep what comes for a short while."""
        self._end("held")

    def shut(self) -> None:
        """Ignore what comes."""
        self._end("shut")
        self._preroll.take()

    def stop(self, now: float) -> None:
        """The user ended the recording; what is still under way belongs to it."""
        if self.gate == "open":
            self._deadline = now + GRACE_SECONDS + CATCH_UP_SECONDS
            self._services.socket.wheel.set(self._timer, now + GRACE_SECONDS)

    def close(self) -> None:
        """Forget everything."""
        self._end("shut")
        self._services.counters["lost"] += self.jitter.lost
        self._services.counters["late"] += self.jitter.late
        if self.jitter.released:
            audio.loss.observe(self.jitter.lost / self.jitter.released)

    def on_timer(self, now: float) -> float | None:
        """End a press whose last packets have come."""
        if not self.period:
            return None
        for released in self.jitter.flush():
            self._hear(released, now)
        if not self.period.caught_up and now < self._deadline:
            return now + _POLL_SECONDS
        utterance = self.period.finish()
        self.hold()
        if utterance:
            self._consumers.listener.take_utterance(utterance, now)
        elif self.pressed:
            self._consumers.press.answer_silence()
        return None

    def _listen(self, packets: Sequence[bytes]) -> None:
        """Begin a listening period with packets that came before it."""
        self._end("open")
        settings = self._services.settings
        endpoint_ms = None if self.pressed else float(settings.endpoint_ms)
        pause_ms = float(settings.pause_ms) if settings.pause_ms < settings.endpoint_ms else LONGEST_MS
        collector = UtteranceCollector(endpoint_ms, pause_ms)
        self.period = ListeningPeriod(self._services, self._format, collector, self._consumers)
        for packet in packets:
            self.period.feed(packet)

    def _end(self, gate: Gate) -> None:
        self._services.socket.wheel.cancel(self._timer)
        if self.period:
            self.period.close()
            self.period = None
        self.gate = gate

    def _hear(self, released: bytes | None, now: float) -> None:
        packet = toc.empty_packet(self._format.frame_ms) if released is None else released
        if self._settles_at is not None:
            if now < self._settles_at:
                self._services.counters["unwanted"] += 1
                return
            self._settles_at = None
        if self.gate == "held":
            self._preroll.add(packet, now)
            if self._preroll.is_live(now):
                self._consumers.listener.listen_unasked(now)
        elif self.gate == "open":
            if self.period:
                self.period.feed(packet)
        else:
            self._services.counters["not_listening"] += 1
