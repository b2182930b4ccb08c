"""How much audio a device sent at once: what it had stored, and did not just hear."""

import math

BURST_SECONDS = 0.3
"""More than the network holds back: firmware sends up to two seconds of the wake word at once (contract 5.1)."""


class Burst:
    """By how much the audio that came is longer than the time in which it came.

    Args:
        frame_ms: Milliseconds a packet.
    """

    def __init__(self, frame_ms: int) -> None:
        self._frame = frame_ms / 1000
        self._ahead = 0.0
        self.at = -math.inf
        """When the last packet came."""

    def add(self, now: float) -> None:
        """A packet came."""
        self._ahead, self.at = self.seconds(now) + self._frame, now

    def seconds(self, now: float) -> float:
        """Return how far the device's audio is ahead of the time; it is no more when that time has passed."""
        return max(0.0, self._ahead - (now - self.at)) if self._ahead else 0.0
