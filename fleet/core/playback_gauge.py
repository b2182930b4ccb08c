"""Lost packets of an answer, told from what the device plays.

Firmware whose echo the server cancels sends back the timestamp of each frame that it plays, with the frame that it
records at that moment (contract 4.4). It skips lost frames, so after a loss it is further than it would be; the network
and its own buffers delay the news by a time that changes little.
"""

from collections import deque

_WINDOW = 16
"""News of which the quickest counts: the others were delayed on the way."""
_CERTAIN = 0.7
"""Share of a frame that is taken for a lost one."""
_MOST_LEFT = 64
"""Frames between what was sent and what is played; a device holds fewer, so with more the news is wrong."""


class PlaybackGauge:
    """Counts the lost frames of one answer.

    Args:
        frame_ms: Length of every packet.
    """

    def __init__(self, frame_ms: int) -> None:
        self._frame = frame_ms / 1000
        self._recent: deque[float] = deque(maxlen=_WINDOW)
        self._usual: float | None = None
        """How late the news of an answer without a loss is, in seconds."""

    def take(self, left: int, played_at: float, now: float) -> int:
        """Return how many frames more are known to be lost.

        Args:
            left: Frames that were sent after the one that the device plays.
            played_at: When it should have played all of them.
            now: When the device's word came.
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
