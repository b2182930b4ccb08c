"""From a session's packets to utterances: order, gate, listening period."""

from collections.abc import Sequence
from typing import Literal

from fleet.adapters.speech.stream_state import LOST
from fleet.core.endpointing import LONGEST_MS
from fleet.core.reference import EchoReference, Played
from fleet.core.turn_end import LATEST_MS
from fleet.ground.metrics import audio
from fleet.roles.edge.listening.burst import Burst
from fleet.roles.edge.listening.jitter_buffer import JitterBuffer, Payload, StampedPacket
from fleet.roles.edge.listening.listening_period import ListeningPeriod, SpeechConsumers
from fleet.roles.edge.listening.preroll_buffer import PrerollBuffer
from fleet.roles.edge.listening.utterance_collector import OVER_ECHO_MS, UtteranceCollector
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.transport.timer_wheel import Timer
from fleet.wire import toc
from fleet.wire.messages import AudioFormat

SETTLE_SECONDS = 0.1
"""Time after a wake word's message in which audio is ignored: it is still the wake word, not the microphone."""
GRACE_SECONDS = 0.2
"""Time after `listen stop` in which packets still belong to the utterance: up to four may follow."""
CATCH_UP_SECONDS = 1.0
"""Longest wait after that for an audio input that lags behind."""
_POLL_SECONDS = 0.02

Gate = Literal["held", "open", "shut"]


class Uplink:
    """Receives one session's audio.

    The gate decides about packets: `held` keeps them for the next listening period, `open` feeds them to the current
    one, `shut` ignores them.

    Args:
        uplink: Format of the packets.
        services: Of the edge.
        consumers: Act on utterances.
    """

    __slots__ = (
        "_consumers",
        "_deadline",
        "_format",
        "_preroll",
        "_services",
        "_settles_at",
        "_timer",
        "burst",
        "gate",
        "jitter",
        "period",
        "pressed",
    )

    def __init__(self, uplink: AudioFormat, services: EdgeServices, consumers: SpeechConsumers) -> None:
        self._format = uplink
        self._services = services
        self._consumers = consumers
        self.burst = Burst(uplink.frame_ms)
        self.jitter = JitterBuffer()
        """Puts packets in order, and counts lost ones."""
        self._preroll = PrerollBuffer(uplink.frame_ms)
        self.period: ListeningPeriod | None = None
        """The listening period; None outside of one."""
        self._timer = Timer()
        self._deadline = 0.0
        self._settles_at: float | None = None
        self.pressed = False
        """Push-to-talk: whether only `stop` ends an utterance."""
        self.gate: Gate = "held"

    def push(self, sequence: int, payload: bytes, now: float, timestamp: int = 0) -> bool:
        """Take one admitted packet; return whether it is listened to as it is, as nearly every packet.

        Args:
            sequence: Its number.
            payload: Opus; empty for a silent frame without a number.
            now: The time.
            timestamp: Of what the device had just played, in milliseconds.
        """
        if not payload:
            # The device is not proved to have sent it. So it never opens a listening period, and lengthens a press by
            # at most `PADDING_MS`.
            if self.period and self.period.may_pad():
                self._pass_gate(toc.empty_packet(self._format.frame_ms), now)
            else:
                self._services.counters["unwanted"] += 1
            return False
        self.burst.add(now)
        period = self.period
        if period is not None and (direct := period.direct) is not None and self.jitter.next(sequence):
            if not direct.feed(payload):
                period.note_dropped()
            return True
        stamped: Payload = StampedPacket(payload, timestamp) if self._consumers.reference else payload
        for released in self.jitter.push(sequence, stamped, now):
            self._pass_gate(released, now)
        return False

    def rejoin(self, packets: list[tuple[int, bytes]], now: float) -> None:
        """Take packets that were proved together, in order; the stream may have restarted at lower numbers."""
        for released in self.jitter.rejoin(packets[0][0]):
            self._pass_gate(released, now)
        for sequence, payload in packets:
            self.push(sequence, payload, now)

    def settle(self, now: float) -> None:
        """Discard the audio until now (a wake word, an echo of the answer): it is not part of the next utterance."""
        self._settles_at = now + SETTLE_SECONDS
        self._preroll.take()
        if self.gate == "open":
            self._listen([])

    def open(self, now: float, *, pressed: bool) -> None:
        """Listen; a period of the same kind continues.

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
        """Listen, beginning with all packets that were held.

        Args:
            pressed: Push-to-talk; None keeps the value.
        """
        self.pressed = self.pressed if pressed is None else pressed
        self._listen(self._preroll.take())

    def hold(self) -> None:
        """Stop listening; keep the last packets that come."""
        self._end("held")

    def shut(self) -> None:
        """Stop listening; ignore the packets that come."""
        self._end("shut")
        self._preroll.take()

    def yield_floor(self, *, interruptible: bool) -> None:
        """Note that an answer begins: stop listening, unless the user may interrupt it by speaking."""
        if not interruptible:
            self.shut()
        elif self.period:
            self.period.collector.mark_overlap()

    def stop(self, now: float) -> None:
        """End the recording of a press; packets that are still on their way belong to it."""
        if self.gate == "open":
            self._deadline = now + GRACE_SECONDS + CATCH_UP_SECONDS
            self._services.socket.wheel.set(self._timer, now + GRACE_SECONDS, self)

    def close(self) -> None:
        """Stop listening; count what was lost and late."""
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
            self._pass_gate(released, now)
        if not self.period.caught_up and now < self._deadline:
            return now + _POLL_SECONDS
        utterance = self.period.finish()
        self.hold()
        if utterance:
            self._consumers.listener.take_utterance(utterance, now)
        elif self.pressed:
            self._consumers.press.answer_silent_press()
        return None

    def _listen(self, packets: Sequence[bytes]) -> None:
        """Begin a listening period with some packets from before it."""
        self._end("open")
        settings = self._consumers.agent.settings
        judged = settings.pause_ms < settings.endpoint_ms
        endpoint_ms = LATEST_MS if judged else float(settings.endpoint_ms)
        pause_ms = float(settings.pause_ms) if judged else LONGEST_MS
        echoes = self._consumers.reference is not None
        further_ms = OVER_ECHO_MS if echoes else 0.0
        collector = UtteranceCollector(None if self.pressed else endpoint_ms, pause_ms, further_ms)
        self.period = ListeningPeriod(self._services, self._format, collector, self._consumers, echoes=echoes)
        if self._settles_at is None and not echoes:
            self.period.listen_directly()
        for packet in packets:
            self.period.feed(packet)

    def _end(self, gate: Gate) -> None:
        self._services.socket.wheel.cancel(self._timer)
        if self.period:
            self.period.close()
            self.period = None
        self.gate = gate

    def _pass_gate(self, released: Payload | None, now: float) -> None:
        packet, played = (LOST, None) if released is None else _find_played(self._consumers.reference, released, now)
        if self._settles_at is not None:
            if now < self._settles_at:
                self._services.counters["unwanted"] += 1
                return
            self._settles_at = None
            if self.period and self._consumers.reference is None:
                self.period.listen_directly()
        if self.gate == "held":
            self._preroll.add(packet, now)
            if self._preroll.is_live(now):
                self._consumers.listener.infer_listening(now)
        elif self.gate == "open":
            if self.period:
                self.period.feed(packet, played)
        else:
            self._services.counters["not_listening"] += 1


def _find_played(reference: EchoReference | None, released: Payload, now: float) -> tuple[bytes, Played | None]:
    """Return a packet, and what the device had just played; None if that is not known."""
    if isinstance(released, StampedPacket):
        return released.packet, reference.find(released.timestamp, now) if reference else None
    return released, None
