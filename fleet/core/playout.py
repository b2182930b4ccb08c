"""When each packet of one answer is sent, so that the device's queue neither overflows nor runs empty.

The schedule models when the device will have played all that was sent, and sends the next packet when that time is
less than the lead ahead. Times are seconds on any steady clock.
"""

from collections import deque
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


_USUAL = Pacing()


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
        self._frame = frame_ms / 1000
        self._pacing = pacing
        self._silence = silence
        self._queue: deque[bytes | int] = deque()
        self._ended = False
        self._inside = False
        self._filled = 0
        self.device = device or PlayoutDevice()
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
        self._queue.append(sentence)
        self._inside, self._filled = True, 0

    def end_sentence(self) -> None:
        """Note that the sentence is complete; the time until the next one does not count as a slow voice."""
        self._inside = False

    def rest(self) -> None:
        """Send no silence until the next sentence begins."""
        self._inside, self._filled = True, round(MOST_FILLED / self._frame) + 1

    def add(self, packet: bytes) -> None:
        self._queue.append(packet)
        self.waiting += 1

    def end(self) -> None:
        """Note that nothing more will be added."""
        self._ended = True

    def hold(self) -> None:
        """Send nothing, also no end, until `go_on`; the device plays what it has."""
        self.held = True

    def go_on(self) -> None:
        """Send the packets that were kept: the lead first, as at the beginning, if the device's queue ran empty."""
        self.held = False

    def add_loss(self, frames: float) -> None:
        """Note lost frames; as many packets are then sent ahead of time, within the bound."""
        device = self.device
        device.missing = min(device.missing + frames, self._pacing.lead)
        count = min(int(device.missing), self._pacing.lead - device.made_up)
        device.missing -= count
        device.made_up += count
        device.played_at -= count * self._frame

    def step(self, now: float) -> PlayoutStep:
        """Return what is due; at most one packet."""
        due = self._due(now)
        if due is None:
            return _IDLE
        if due - now > _EXACT:
            return PlayoutStep(again=due)
        if self.waiting:
            begins, packet = self._take()
        elif self._ended:
            return PlayoutStep(begins=self._take()[0], stop=True)
        else:
            begins, packet = (), self._silence
            self._filled += self._inside
        device = self.device
        device.sent_at = now
        if device.played_at < now:
            # The device plays the packets that were sent ahead of time.
            device.made_up = max(0, device.made_up - int((now - device.played_at) / self._frame + _EXACT))
            device.played_at = now
        device.played_at += self._frame
        if self._pacing.loss:
            self.add_loss(self._pacing.loss)
        return PlayoutStep(packet, begins, False, self._due(now))

    def _due(self, now: float) -> float | None:
        device = self.device
        if device.ready_at is None or self.held:
            return None
        if self.waiting:
            prefilled = device.played_at - device.sent_at >= (PREFILL - 1) * self._frame
            due = device.played_at - (self._pacing.lead - 1) * self._frame
            spaced = device.sent_at + (self._frame / 2 if prefilled else SPACING)
            if device.made_up and isinstance(self._queue[0], int):
                # Between two sentences the queue runs empty, which corrects the model.
                due = device.played_at + device.made_up * self._frame
            return max(due if due > spaced else spaced, device.ready_at)
        if self._ended:
            # A device that listens again at once clears its queue, so the end waits until the last frame was played.
            over = max(device.sent_at + STOP_AFTER, device.played_at + device.made_up * self._frame)
            return over + self._pacing.settle if device.sent_at else now
        if not device.sent_at or (self._inside and self._filled * self._frame >= MOST_FILLED):
            return None
        return max(device.ready_at, device.sent_at + SPACING, device.played_at - (SILENCE_LEAD - 1) * self._frame)

    def _take(self) -> tuple[tuple[int, ...], bytes | None]:
        begins: tuple[int, ...] = ()
        packet = None
        while packet is None and self._queue:
            item = self._queue.popleft()
            if isinstance(item, bytes):
                self.waiting -= 1
                self.sent += 1
                packet = item
            else:
                begins += (item,)
        self.begun += len(begins)
        return begins, packet
