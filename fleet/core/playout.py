"""When each packet of one answer is sent, so that the device's queue neither overflows nor runs dry.

The device plays what it was sent at its own pace: the schedule keeps a model of when it will have played everything,
and sends the next packet once that lies less than the lead ahead. Times are seconds on any steady clock.
"""

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

LEAD = 4
"""Frames that the device may have queued; in auto mode it plays them out even after an interruption."""
SILENCE_LEAD = 2
"""Frames of filling silence that the device may have queued: real audio waits behind them."""
SPACING = 0.010
"""Least time between two packets: a device's network stack holds six datagrams."""
FIRST_AFTER = 0.150
"""From the announcement of speech to its first packet.

A device throws away what comes within 100 ms; the rest is for an announcement that is on its way for longer."""
STOP_AFTER = 0.100
"""Least time from the last packet to the announcement of the end, which may overtake packets."""
_EXACT = 1e-6
"""Seconds that are lost in adding times."""


class Step(NamedTuple):
    """What is to be done now, and when to ask again (None: not before something was added)."""

    packet: bytes | None = None
    begins: tuple[int, ...] = ()
    """Sentences that begin with this packet."""
    stop: bool = False
    """Everything was sent and played: announce the end."""
    again: float | None = None


_IDLE = Step()


@dataclass(slots=True)
class Device:
    """What is known of the device while it is in its speaking state."""

    ready_at: float | None = None
    """When it takes packets; None until speech was announced."""
    sent_at: float = 0.0
    """When the last packet was sent; 0 before the first."""
    played_at: float = 0.0
    """When it will have played all that was sent."""


class Playout:
    """Paces the packets of one answer.

    Args:
        frame_ms: Length of every packet.
        silence: The packet that fills gaps between sentences.
        device: Handed on from an answer that this one replaces while the device still speaks it.
    """

    def __init__(self, frame_ms: int, silence: bytes, device: Device | None = None) -> None:
        self._frame = frame_ms / 1000
        self._lead = (LEAD - 1) * self._frame
        self._silence_lead = (SILENCE_LEAD - 1) * self._frame
        self._silence = silence
        self._queue: deque[bytes | int] = deque()
        self._ended = False
        self.device = device or Device()
        self.waiting = 0
        """Packets that are not sent yet."""
        self.begun = 0
        """Sentences whose first packet was sent."""

    @property
    def started(self) -> bool:
        """Whether speech was announced to the device."""
        return self.device.ready_at is not None

    @property
    def drained(self) -> bool:
        """Whether nothing is left to send and nothing more will come."""
        return self._ended and not self.waiting

    def start(self, now: float) -> None:
        """Speech was announced to the device just now."""
        if self.device.ready_at is None:
            self.device.ready_at = now + FIRST_AFTER

    def mark(self, sentence: int) -> None:
        """The next packet begins this sentence."""
        self._queue.append(sentence)

    def add(self, packet: bytes) -> None:
        self._queue.append(packet)
        self.waiting += 1

    def end(self) -> None:
        """Nothing more will be added."""
        self._ended = True

    def step(self, now: float) -> Step:
        """Return what is due; at most one packet."""
        due = self._due(now)
        if due is None:
            return _IDLE
        if due - now > _EXACT:
            return Step(again=due)
        if self.waiting:
            begins, packet = self._take()
        elif self._ended:
            return Step(begins=self._take()[0], stop=True)
        else:
            begins, packet = (), self._silence
        device = self.device
        device.sent_at = now
        device.played_at = (device.played_at if device.played_at > now else now) + self._frame
        return Step(packet, begins, False, self._due(now))

    def _due(self, now: float) -> float | None:
        device = self.device
        if device.ready_at is None:
            return None
        if self.waiting:
            due, spaced = device.played_at - self._lead, device.sent_at + SPACING
            return max(due if due > spaced else spaced, device.ready_at)
        if self._ended:
            # A device that listens again at once clears its queue, so the end waits until the last frame was played.
            return max(device.sent_at + STOP_AFTER, device.played_at) if device.sent_at else now
        if not device.sent_at:
            return None
        return max(device.ready_at, device.sent_at + SPACING, device.played_at - self._silence_lead)

    def _take(self) -> tuple[tuple[int, ...], bytes | None]:
        begins: tuple[int, ...] = ()
        packet = None
        while packet is None and self._queue:
            item = self._queue.popleft()
            if isinstance(item, bytes):
                self.waiting -= 1
                packet = item
            else:
                begins += (item,)
        self.begun += len(begins)
        return begins, packet
