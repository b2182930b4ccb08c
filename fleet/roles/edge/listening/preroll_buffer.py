"""Audio to which nobody listens yet: a device may be faster than the message that it listens."""

from collections import deque

HELD_MS = 2000
"""How much is kept."""
UNASKED_SECONDS = 1.5
"""From when on it is no burst of what the device had stored: its microphone is open."""
PREROLL_SECONDS = 0.3
"""How much belongs to what is said next."""


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
        """Return whether the device has been speaking for a while already."""
        return len(self._packets) == self._packets.maxlen and now - self._packets[0][0] >= UNASKED_SECONDS

    def take_recent(self, now: float, waited: float = 0.0) -> list[bytes]:
        """Return what belongs to what is said next, and forget all.

        Args:
            now: The time.
            waited: For how many seconds packets may have waited that seem to have come just now.
        """
        seconds = PREROLL_SECONDS + waited
        recent = [packet for at, packet in self._packets if now - at <= seconds]
        self._packets.clear()
        return recent[-max(1, int(seconds * 1000) // self._frame_ms) :]

    def take(self) -> list[bytes]:
        """Return everything, and forget it."""
        packets = [packet for _, packet in self._packets]
        self._packets.clear()
        return packets
