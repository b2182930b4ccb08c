"""Keep audio from before a listening period: a device's audio may arrive before its `listen start`."""

from collections import deque

HELD_MS = 2000
"""Length of the buffer."""
LIVE_SECONDS = 1.5
"""A full buffer that took at least this long to come is no burst of stored audio: the microphone is open."""
PREROLL_SECONDS = 0.3
"""Audio that belongs to the next utterance."""


class PrerollBuffer:
    """The last packets of one session.

    Args:
        frame_ms: Milliseconds a packet.
    """

    def __init__(self, frame_ms: int) -> None:
        self._packets: deque[tuple[float, bytes]] = deque(maxlen=HELD_MS // frame_ms)
        self._frame_ms = frame_ms

    def add(self, packet: bytes, now: float) -> None:
        self._packets.append((now, packet))

    def is_live(self, now: float) -> bool:
        """Return whether the device has been sending live audio for a while."""
        return len(self._packets) == self._packets.maxlen and now - self._packets[0][0] >= LIVE_SECONDS

    def take_recent(self, now: float, waited: float = 0.0) -> list[bytes]:
        """Return the packets that belong to the next utterance, and forget all.

        Args:
            now: The time.
            waited: Seconds that packets may have waited in the socket before the edge read them.
        """
        seconds = PREROLL_SECONDS + waited
        recent = [packet for at, packet in self._packets if now - at <= seconds]
        self._packets.clear()
        return recent[-max(1, int(seconds * 1000) // self._frame_ms) :]

    def take(self) -> list[bytes]:
        """Return all packets, and forget them."""
        packets = [packet for _, packet in self._packets]
        self._packets.clear()
        return packets
