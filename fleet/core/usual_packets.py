"""The packets of an answer that need nothing but their time; nearly all do."""

from collections import deque
from typing import Protocol

from fleet.core.playout_device import EXACT, PacingTerms, PlayoutDevice


class PacketSink(Protocol):
    """Takes the packets for one device."""

    def send(self, payload: bytes, /) -> bool:
        """Send an Opus packet; return False if it is not known where to."""


class StepTaker(Protocol):
    """Does what an answer's playout says."""

    def take_step(self, now: float) -> float | None:
        """Do what is due; return when to call again, or None."""


class UsualPackets:
    """Sends usual packets at their times, and asks for a step whenever something else may be due.

    It owns the timer of its answer: on a way through the answer and its playout each packet costs more.

    Args:
        device: Has the time of the next packet.
        terms: Of the pacing.
        packets: That wait; at least `left`.
    """

    __slots__ = ("_device", "_frame", "_lead", "_send", "_steady", "_steps", "_terms", "left", "packets")

    def __init__(self, device: PlayoutDevice, terms: PacingTerms, packets: deque[bytes]) -> None:
        self._device, self._terms, self.packets = device, terms, packets
        self._frame, self._lead, self._steady = terms.frame, terms.lead, terms.steady
        self.left = 0
        """How many of the next packets are usual ones."""

    def attach(self, sink: PacketSink, steps: StepTaker) -> None:
        """Send to this sink; call this before the timer is set."""
        self._send = sink.send
        self._steps = steps

    def on_timer(self, now: float) -> float | None:
        """Send the packet that is due and return when to look for the next one."""
        device, left = self._device, self.left
        if not left or device.next_at - now > EXACT:
            return self._steps.take_step(now)
        self.left = left - 1
        # What `note_sent` does, where nothing but the lead decides.
        played_at = device.played_at + self._frame
        due = played_at - self._lead
        if due - now >= self._steady:
            device.sent_at, device.played_at, device.next_at = now, played_at, due
        else:
            device.note_sent(now, self._terms)
            due = device.next_at
        send = self._send
        send(self.packets.popleft())
        # After the last one a step counts anew; nothing is due so soon.
        return due if left > 1 else self._steps.take_step(now)
