"""When each packet of one answer is sent, so that the device's queue neither overflows nor runs empty.

The schedule models when the device will have played all that was sent, and sends the next packet when that time is
less than the lead ahead. Times are seconds on any steady clock.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

LEAD = 8
"""Frames that the device may have queued. In auto mode it plays them even after an interruption."""
LEAD_OF_INTERRUPTIBLE = 4
"""The lead where the user interrupts by speaking: the device plays its queue over the user's words."""
SETTLE = 0.3
"""Seconds from the modelled end of the playback to `tts stop`, for devices that clear their queue on it: the model
includes neither the network's delay nor the device's own buffers."""
SILENCE_LEAD = 2
"""Frames of filling silence that the device may have queued: real audio waits behind them."""
PREFILL = 4
"""Frames that are sent as fast as `SPACING` allows; the rest of the lead is sent at twice the pace of playback."""
SPACING = 0.010
"""Least time between two packets: a device's network stack holds six datagrams."""
FIRST_AFTER = 0.150
"""From the announcement of speech to its first packet.

A device discards packets within 100 ms of `tts start`; the rest is a margin for a delayed `tts start`."""
STOP_AFTER = 0.100
"""Least time from the last packet to the announcement of the end, which may overtake packets."""
MOST_FILLED = 2.0
"""Seconds of silence that are sent inside one sentence; after that nothing is sent until the voice continues."""
_EXACT = 1e-6
"""Rounding error of added times, in seconds."""


class PlayoutStep(NamedTuple):
    """What to do now, and when to call again (None: not before a packet or sentence is added)."""

    packet: bytes | None = None
    begins: tuple[int, ...] = ()
    """Sentences that begin with this packet."""
    stop: bool = False
    """Everything was sent and played: announce the end."""
    again: float | None = None


_IDLE = PlayoutStep()


@dataclass(frozen=True, slots=True)
class Pacing:
    """The pacing of one device's packets.

    A device does not conceal losses: each lost packet shortens its queue by one frame. So one packet per lost frame, at
    most `lead`, is sent ahead of time, and the queue keeps its length. The number of lost frames is an estimate. If no
    frame was lost, the queue holds twice the lead, which is within the 20 packets of firmware 2.5. Between two
    sentences the queue runs empty, so that errors do not add up.
    """

    lead: int = LEAD
    """Frames that the device may have queued; also the most lost frames that are compensated at a time."""
    loss: float = 0.0
    """Known share of packets that are lost."""
    settle: float = 0.0
    """Seconds from the end of the playback to `tts stop`."""


@dataclass(slots=True)
class PlayoutDevice:
    """The model of the device while it is in its speaking state."""

    ready_at: float | None = None
    """When it accepts packets; None before `tts start`."""
    sent_at: float = 0.0
    """When the last packet was sent; 0 before the first."""
    played_at: float = 0.0
    """When it will have played all that was sent."""
    missing: float = 0.0
    """Lost frames that are not compensated yet."""
    made_up: int = 0
    """Frames that were sent ahead of time in place of lost ones."""
    planned: float | None = None
    """When the next packet is due; None if that is not certain, or if the packet begins a sentence."""

    def note_sent(self, now: float, terms: "_Terms") -> None:
        """Note that a packet was sent."""
        self.sent_at = now
        if self.played_at < now:
            # The device plays the packets that were sent ahead of time.
            self.made_up = max(0, self.made_up - int((now - self.played_at) / terms.frame + _EXACT))
            self.played_at = now
        self.played_at += terms.frame
        self.planned = None
        if terms.loss:
            self.add_loss(terms.loss, terms)

    def add_loss(self, frames: float, terms: "_Terms") -> None:
        """Note lost frames; as many packets are then sent ahead of time, within the bound."""
        self.missing = min(self.missing + frames, terms.most_made_up)
        count = min(int(self.missing), terms.most_made_up - self.made_up)
        self.missing -= count
        self.made_up += count
        self.played_at -= count * terms.frame
        self.planned = None


class _Terms:
    """What the pacing is for packets of a length: times in seconds."""

    __slots__ = ("frame", "half", "lead", "loss", "most_made_up", "prefilled", "settle")

    def __init__(self, frame: float, pacing: Pacing) -> None:
        self.frame, self.half = frame, frame / 2
        self.lead = (pacing.lead - 1) * frame
        self.prefilled = (PREFILL - 1) * frame
        self.most_made_up, self.loss, self.settle = pacing.lead, pacing.loss, pacing.settle

    def due(self, device: PlayoutDevice) -> float:
        """Return when the next packet may be sent."""
        sent_at, played_at = device.sent_at, device.played_at
        due = played_at - self.lead
        spaced = sent_at + (self.half if played_at - sent_at >= self.prefilled else SPACING)
        return due if due > spaced else spaced


_USUAL = Pacing()


class _Sentences:
    """Sentences that have not begun, each with the number of packets before it."""

    __slots__ = ("_waiting", "next_at")

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, int]] = deque()
        self.next_at: int | None = None
        """The number of packets before the next one."""

    def add(self, packets: int, sentence: int) -> None:
        self._waiting.append((packets, sentence))
        self.next_at = self._waiting[0][0]

    def take(self, packets: int) -> tuple[int, ...]:
        """Return the sentences that begin after so many packets."""
        taken: tuple[int, ...] = ()
        while self.next_at == packets:
            taken += (self._waiting.popleft()[1],)
            self.next_at = self._waiting[0][0] if self._waiting else None
        return taken


class Playout:
    """Paces the packets of one answer.

    Args:
        frame_ms: Length of every packet.
        silence: The packet that fills gaps between sentences.
        device: Taken over from an answer that this one replaces while the device still plays it.
        pacing: The device's pacing.
    """

    def __init__(
        self, frame_ms: int, silence: bytes, device: PlayoutDevice | None = None, pacing: Pacing = _USUAL
    ) -> None:
        self._terms = _Terms(frame_ms / 1000, pacing)
        self._silence = silence
        self._queue: deque[bytes] = deque()
        self._sentences = _Sentences()
        self._ended = False
        self._inside = False
        self._filled = 0
        self.device = device or PlayoutDevice()
        self.device.planned = None
        self.held = False
        """Whether nothing is sent for now; the packets are kept."""
        self.waiting = 0
        """Packets that are not sent yet."""
        self.begun = 0
        """Sentences whose first packet was sent."""
        self.sent = 0
        """Packets of speech that were sent, without filling silence."""

    @property
    def started(self) -> bool:
        """Whether `tts start` was sent to the device."""
        return self.device.ready_at is not None

    @property
    def drained(self) -> bool:
        """Whether nothing is left to send and nothing more will come."""
        return self._ended and not self.waiting

    def start(self, now: float) -> None:
        """Note that `tts start` was sent to the device."""
        if self.device.ready_at is None:
            self.device.ready_at = now + FIRST_AFTER

    def begin_sentence(self, sentence: int) -> None:
        """Note that the next packet begins this sentence."""
        self._sentences.add(self.sent + self.waiting, sentence)
        self._inside, self._filled = True, 0

    def end_sentence(self) -> None:
        """Note that the sentence is complete; the time until the next one does not count as a slow voice."""
        self._inside = False

    def rest(self) -> None:
        """Send no silence until the next sentence begins."""
        self._inside, self._filled = True, round(MOST_FILLED / self._terms.frame) + 1

    def add(self, packets: Sequence[bytes]) -> None:
        self._queue.extend(packets)
        self.waiting += len(packets)

    def end(self) -> None:
        """Note that nothing more will be added."""
        self._ended = True

    def hold(self) -> None:
        """Send nothing, also no end, until `go_on`; the device plays what it has."""
        self.held = True
        self.device.planned = None

    def go_on(self) -> None:
        """Send the packets that were kept: the lead first, as at the beginning, if the device's queue ran empty."""
        self.held = False

    def add_loss(self, frames: float) -> None:
        """Note lost frames; as many packets are then sent ahead of time, within the bound."""
        self.device.add_loss(frames, self._terms)

    def next_packet(self, now: float) -> bytes | None:
        """Return the packet that is due, if `step` would return nothing else, as nearly always; otherwise do nothing.

        `due` has said when that is.
        """
        device = self.device
        if device.planned is None or device.planned - now > _EXACT:
            return None
        self.waiting -= 1
        self.sent += 1
        device.note_sent(now, self._terms)
        return self._queue.popleft()

    def step(self, now: float) -> PlayoutStep:
        """Return what is due; at most one packet."""
        due = self.due(now)
        if due is None:
            return _IDLE
        if due - now > _EXACT:
            return PlayoutStep(again=due)
        begins = self._sentences.take(self.sent) if self.waiting or self._ended else ()
        self.begun += len(begins)
        packet = self._silence
        if self.waiting:
            self.waiting -= 1
            self.sent += 1
            packet = self._queue.popleft()
        elif self._ended:
            return PlayoutStep(begins=begins, stop=True)
        else:
            self._filled += self._inside
        self.device.note_sent(now, self._terms)
        return PlayoutStep(packet, begins, False, self.due(now))

    def due(self, now: float) -> float | None:
        """Return when something is due; None if nothing is before a packet or sentence is added."""
        device, terms = self.device, self._terms
        if device.planned is not None:
            return device.planned
        if device.ready_at is None or self.held:
            return None
        if self.waiting:
            due = max(terms.due(device), device.ready_at)
            if self._sentences.next_at != self.sent:
                device.planned = due
            elif device.made_up:
                # Between two sentences the queue runs empty, which corrects the model.
                due = max(due, device.played_at + device.made_up * terms.frame)
            return due
        if self._ended:
            # A device that listens again at once clears its queue, so the end waits until the last frame was played.
            over = max(device.sent_at + STOP_AFTER, device.played_at + device.made_up * terms.frame)
            return over + terms.settle if device.sent_at else now
        if not device.sent_at or (self._inside and self._filled * terms.frame >= MOST_FILLED):
            return None
        return max(device.ready_at, device.sent_at + SPACING, device.played_at - (SILENCE_LEAD - 1) * terms.frame)
