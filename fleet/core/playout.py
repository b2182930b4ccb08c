"""When each packet of one answer is sent, so that the device's queue neither overflows nor runs empty.

The schedule models when the device will have played all that was sent, and sends the next packet when that time is
less than the lead ahead. Times are seconds on any steady clock.
"""

import math
from typing import NamedTuple

from fleet.core.packet_queue import PacketQueue
from fleet.core.playout_device import EXACT, SPACING, Pacing, PlayoutDevice, pacing_terms
from fleet.core.usual_packets import UsualPackets

SILENCE_LEAD = 2
"""Frames of filling silence that the device may have queued: real audio waits behind them."""
FIRST_AFTER = 0.150
"""From the announcement of speech to its first packet.

A device discards packets within 100 ms of `tts start`; the rest is a margin for a delayed `tts start`."""
STOP_AFTER = 0.100
"""Least time from the last packet to the announcement of the end, which may overtake packets."""


class PlayoutStep(NamedTuple):
    """What to do now, and when to call again (None: not before a packet or sentence is added)."""

    packet: bytes | None = None
    begins: tuple[int, ...] = ()
    """Sentences that begin with this packet."""
    stop: bool = False
    """Everything was sent and played: announce the end."""
    again: float | None = None


_IDLE = PlayoutStep()


_USUAL = Pacing()


class Playout:
    """Paces the packets of one answer.

    Args:
        frame_ms: Length of every packet.
        silence: The packet that fills gaps between sentences.
        device: Taken over from an answer that this one replaces while the device still plays it.
        pacing: The device's pacing.
    """

    __slots__ = ("_ended", "_fill", "_packets", "_silence", "_terms", "begun", "device", "held", "queue", "usual")

    def __init__(
        self, frame_ms: int, silence: bytes, device: PlayoutDevice | None = None, pacing: Pacing = _USUAL
    ) -> None:
        self._terms = pacing_terms(frame_ms, pacing)
        self._silence = silence
        self.queue = PacketQueue()
        self._packets = self.queue.packets
        self._ended = False
        self._fill: float = math.inf
        """Packets of silence that may be sent until the next sentence begins or ends."""
        self.device = device or PlayoutDevice()
        self.device.plan(self._terms)
        self.usual = UsualPackets(self.device, self._terms, self._packets)
        self.held = False
        """Whether nothing is sent for now; the packets are kept."""
        self.begun = 0
        """Sentences whose first packet was sent."""

    @property
    def started(self) -> bool:
        """Whether `tts start` was sent to the device."""
        return self.device.ready_at is not None

    @property
    def drained(self) -> bool:
        """Whether nothing is left to send and nothing more will come."""
        return self._ended and not self._packets

    def start(self, now: float) -> None:
        """Note that `tts start` was sent to the device."""
        if self.device.ready_at is None:
            self.device.ready_at = now + FIRST_AFTER
            self.device.plan(self._terms)

    def begin_sentence(self, sentence: int) -> None:
        """Note that the next packet begins this sentence."""
        self.queue.add_sentence(sentence)
        self._fill = self._terms.most_filled

    def end_sentence(self) -> None:
        """Note that the sentence is complete; the time until the next one does not count as a slow voice."""
        self._fill = math.inf

    def rest(self) -> None:
        """Send no silence until the next sentence begins."""
        self._fill = 0

    def end(self) -> None:
        """Note that nothing more will be added."""
        self._ended = True

    def hold(self) -> None:
        """Send nothing, also no end, until `go_on`; the device plays what it has."""
        self.held = True
        self.usual.left = 0

    def go_on(self) -> None:
        """Send the packets that were kept: the lead first, as at the beginning, if the device's queue ran empty."""
        self.held = False

    def watch_room(self) -> None:
        """Have a step send the next packet: only steps notice that there is room, for which a voice waits."""
        self.usual.left = 0

    def add_loss(self, frames: float) -> None:
        """Note lost frames; as many packets are then sent ahead of time, within the bound."""
        self.device.add_loss(frames, self._terms)

    def step(self, now: float) -> PlayoutStep:
        """Return what is due; at most one packet."""
        due = self.due(now)
        if due is None:
            return _IDLE
        if due - now > EXACT:
            return PlayoutStep(again=due)
        begins = self.queue.take_sentences() if self._packets or self._ended else ()
        self.begun += len(begins)
        packet = self._silence
        if self._packets:
            packet = self._packets.popleft()
        elif self._ended:
            return PlayoutStep(begins=begins, stop=True)
        else:
            self._fill -= 1
        self.usual.left = 0
        self.device.note_sent(now, self._terms)
        return PlayoutStep(packet, begins, False, self.due(now))

    def due(self, now: float) -> float | None:
        """Return when something is due; None if nothing is before a packet or sentence is added."""
        device = self.device
        if self.usual.left:
            return device.next_at
        if device.ready_at is None or self.held:
            return None
        if self._packets:
            return self._next_packet_at()
        terms = self._terms
        if self._ended:
            # A device that listens again at once clears its queue, so the end waits until the last frame was played.
            over = max(device.sent_at + STOP_AFTER, device.played_at + device.made_up * terms.frame)
            return over + terms.settle if device.sent_at else now
        if not device.sent_at or self._fill <= 0:
            return None
        return max(device.ready_at, device.sent_at + SPACING, device.played_at - (SILENCE_LEAD - 1) * terms.frame)

    def _next_packet_at(self) -> float:
        """Return when the next packet is due; count those that need nothing but their time."""
        device, queue = self.device, self.queue
        if queue.begins_at == queue.sent:
            # Between two sentences the queue runs empty, which corrects the model.
            empty = device.played_at + device.made_up * self._terms.frame if device.made_up else 0.0
            return max(device.next_at, empty)
        if queue.room:
            # Where there is none a voice may wait for it, which is noticed in `step`.
            waiting = len(queue)
            self.usual.left = waiting if queue.begins_at is None else min(waiting, queue.begins_at - queue.sent)
        return device.next_at
