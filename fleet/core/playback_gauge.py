"""Lost packets of an answer, measured by the timestamps that the device sends back.

Firmware with server-side echo cancellation sends the timestamp of each frame that it plays, with the frame that it
records at that moment (contract 4.4). It skips lost frames, so after a loss it plays later timestamps than expected.
The network and the device's buffers delay each report by a time that changes little.
"""

from collections import deque

_WINDOW = 16
"""Reports of which the fastest counts: the network delayed the others."""
_CERTAIN = 0.7
"""Share of a frame that counts as one lost frame."""
_MOST_LEFT = 64
"""Frames between the newest sent and the played one; a device holds fewer, so a larger number is wrong."""


class PlaybackGauge:
    """Counts the lost frames of one answer.

    Args:
        frame_ms: Length of every packet.
    """

    def __init__(self, frame_ms: int) -> None:
        self._frame = frame_ms / 1000
        self._recent: deque[float] = deque(maxlen=_WINDOW)
        self._usual: float | None = None
        """Delay of a report while no packet is lost, in seconds."""

    def take(self, left: int, played_at: float, now: float) -> int:
        """Return how many frames more are known to be lost.

        Args:
            left: Frames that were sent after the one that the device plays.
            played_at: When it should have played all of them.
            now: When the device's report arrived.
        """
        if not 0 <= left <= _MOST_LEFT:
            return 0
        self._recent.append(now + left * self._frame - played_at)
        if len(self._recent) < _WINDOW:
            return 0
        delay = min(self._recent)
        if self._usual is None or delay > self._usual:
            self._usual = delay
        lost = int((self._usual - delay) / self._frame + 1 - _CERTAIN)
        if lost:
            self._recent.clear()
        return lost
