"""Measure bursts: stored audio that a device sends faster than real time."""

import math

BURST_SECONDS = 0.3
"""More than network jitter: firmware sends up to two seconds of the wake word at once (contract 5.1)."""


class Burst:
    """Measures how far the received audio is ahead of real time.

    Args:
        frame_ms: Milliseconds a packet.
    """

    __slots__ = ("_frame", "_until", "at")

    def __init__(self, frame_ms: int) -> None:
        self._frame = frame_ms / 1000
        self.at = -math.inf
        """Time of the last packet."""
        self._until = -math.inf
        """When all audio so far would have come in real time."""

    def add(self, now: float) -> None:
        """Count a packet."""
        until = self._until
        self._until, self.at = (until if until > now else now) + self._frame, now

    def seconds(self, now: float) -> float:
        """Return the seconds by which the received audio is ahead of real time; the value decays as time passes."""
        return max(0.0, self._until - now)
