"""The way from a session's packets to utterances: order, gate, ear, recorder."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from fleet.ground.metrics import audio
from fleet.roles.edge.listening.burst import Burst
from fleet.roles.edge.listening.hearing import ListeningPeriod
from fleet.roles.edge.listening.jitter_buffer import JitterBuffer
from fleet.roles.edge.listening.preroll_buffer import PrerollBuffer
from fleet.roles.edge.listening.utterance_collector import Utterance, UtteranceCollector
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.transport.timer_wheel import Timer
from fleet.wire import toc
from fleet.wire.messages import AudioFormat

SETTLE_SECONDS = 0.1
"""After a wake word's messages: the rest of its audio may still be under way, the microphone's comes later."""
GRACE_SECONDS = 0.2
"""After push-to-talk was released: up to four packets may follow."""
CATCH_UP_SECONDS = 1.0
"""Longest time that the ear may then lag behind."""
_POLL_SECONDS = 0.02

Gate = Literal["held", "open", "shut"]


@dataclass(frozen=True, slots=True)
class Listener:
    """Who is told what was heard."""

    on_utterance: Callable[[Utterance, float], None]
    """Takes each utterance and `now`."""
    on_pause: Callable[[Utterance], None]
    """Takes what was said so far when the speaker has perhaps finished."""
    on_voice: Callable[[float], None]
    """Called with `now` for each frame of speech inside an utterance."""
    on_unasked: Callable[[float], None]
    """Called with `now` when the device has spoken for a while and nobody listens; may be called again."""
    on_silence: Callable[[], None]
    """Called when the button was released and nothing was heard."""


class Uplink:
    """Hears one session.

    The gate says what becomes of packets: `held` for whoever listens next, heard (`open`), or ignored (`shut`).

    Args:
        uplink: Format of the packets.
        services: Of the edge.
        listener: Is told what was heard.
    """

    def __init__(self, uplink: AudioFormat, services: EdgeServices, listener: Listener) -> None:
        self._format = uplink
        self._services = services
        self._listener = listener
        self.burst = Burst(uplink.frame_ms)
        self.order = JitterBuffer()
        """Puts packets in order, and knows how many were lost."""
        self._held = PrerollBuffer(uplink.frame_ms)
        self.hearing: ListeningPeriod | None = None
        """The listening period; None while nobody listens."""
        self._timer = Timer(self._finish)
        self._deadline = 0.0
        self._settles_at: float | None = None
        self.pressed = False
        """Whether only `stop` ends an utterance."""
        self.gate: Gate = "held"

    def push(self, sequence: int, payload: bytes, now: float) -> None:
        """Take one packet that was admitted; without a payload it is a silent frame that has no number."""
        if not payload:
            # Nothing shows that the device has sent it: it opens nothing, and lengthens a press by a little at most.
            if self.hearing and self.hearing.may_pad():
                self._hear(None, now)
            else:
                self._services.counters["unwanted"] += 1
            return
        self.burst.add(now)
        for released in self.order.push(sequence, payload, now):
            self._hear(released, now)

    def rejoin(self, packets: list[tuple[int, bytes]], now: float) -> None:
        """Take packets that were proved together, in order; the stream may have gone back to lower numbers."""
        for released in self.order.rejoin(packets[0][0]):
            self._hear(released, now)
        for sequence, payload in packets:
            self.push(sequence, payload, now)

    def settle(self, now: float) -> None:
        """What was sent until now (a wake word, our own voice) is no part of what the user says next."""
        self._settles_at = now + SETTLE_SECONDS
        self._held.take()
        if self.gate == "open":
            self._listen()

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
        self._listen()
        recent = self._held.take_recent(now, self._services.standstill.waited(now))
        for packet in [] if settling else recent:
            self._feed(packet)

    def resume(self, *, pressed: bool | None = None) -> None:
        """Listen, with all that came meanwhile.

        Args:
            pressed: Push-to-talk; as before if it is not said.
        """
        self.pressed = self.pressed if pressed is None else pressed
        self._listen()
        for packet in self._held.take():
            self._feed(packet)

    def hold(self) -> None:
        """Listen to nothing; keep what comes for a short while."""
        self._end("held")

    def shut(self) -> None:
        """Ignore what comes."""
        self._end("shut")
        self._held.take()

    def stop(self, now: float) -> None:
        """The user ended the recording; what is still under way belongs to it."""
        if self.gate == "open":
            self._deadline = now + GRACE_SECONDS + CATCH_UP_SECONDS
            self._services.socket.wheel.set(self._timer, now + GRACE_SECONDS)

    def close(self) -> None:
        """Forget everything."""
        self._end("shut")
        self._services.counters["lost"] += self.order.lost
        self._services.counters["late"] += self.order.late
        if self.order.released:
            audio.loss.observe(self.order.lost / self.order.released)

    def _finish(self, now: float) -> float | None:
        if not self.hearing:
            return None
        for released in self.order.flush():
            self._hear(released, now)
        if not self.hearing.caught_up and now < self._deadline:
            return now + _POLL_SECONDS
        utterance = self.hearing.finish()
        self.hold()
        if utterance:
            self._listener.on_utterance(utterance, now)
        elif self.pressed:
            self._listener.on_silence()
        return None

    def _listen(self) -> None:
        self._end("open")
        settings, told = self._services.settings, self._listener
        endpoint_ms = None if self.pressed else float(settings.endpoint_ms)
        on_pause = told.on_pause if settings.pause_ms < settings.endpoint_ms else None
        recorder = UtteranceCollector(endpoint_ms, told.on_utterance, settings.pause_ms, on_pause)
        self.hearing = ListeningPeriod(self._services.ears, self._format, recorder)
        self.hearing.on_voice = told.on_voice

    def _end(self, gate: Gate) -> None:
        self._services.socket.wheel.cancel(self._timer)
        if self.hearing:
            self.hearing.close()
            self.hearing = None
        self.gate = gate

    def _hear(self, released: bytes | None, now: float) -> None:
        packet = toc.empty_packet(self._format.frame_ms) if released is None else released
        if self._settles_at is not None:
            if now < self._settles_at:
                self._services.counters["unwanted"] += 1
                return
            self._settles_at = None
        if self.gate == "held":
            self._held.add(packet, now)
            if self._held.is_live(now):
                self._listener.on_unasked(now)
        elif self.gate == "open":
            self._feed(packet)
        else:
            self._services.counters["not_listening"] += 1

    def _feed(self, packet: bytes) -> None:
        if self.hearing and not self.hearing.feed(packet):
            self._services.counters["queue_full"] += 1
