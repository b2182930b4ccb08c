"""What a device's loudspeaker played while its microphone heard something, for the cancellation of its echo.

A build with `aec` sends with each frame of its microphone the timestamp of the packet that it had just played.
"""

from collections import OrderedDict

KEPT_SECONDS = 3.0
"""The queue of a device holds at most 40 packets of 60 ms."""


class EchoReference:
    """The packets that were last sent to one device; 3 s of them, about 9 kB.

    Args:
        frame_ms: Length of a packet.
    """

    def __init__(self, frame_ms: int) -> None:
        self._frame_ms = frame_ms
        self._most = int(KEPT_SECONDS * 1000 / frame_ms)
        self._sent: OrderedDict[int, bytes] = OrderedDict()
        self._until = 0.0
        self._played = 0
        self.echo_at = 0.0
        """When the last frame came in which there may be an echo."""

    def note_sent(self, timestamp: int, packet: bytes) -> None:
        """Take a packet that was sent; timestamps rise."""
        self._sent[timestamp] = packet
        if len(self._sent) > self._most:
            self._sent.popitem(last=False)

    def take(self, timestamp: int, now: float) -> bytes:
        """Return the packet with this timestamp; empty if it is not known. It is given once, and no older one after it.

        Args:
            timestamp: That a frame of the microphone carries, in milliseconds; 0 if nothing was played.
            now: The time.
        """
        if timestamp not in self._sent:
            return b""
        known, packet = self._sent.popitem(last=False)
        while known != timestamp:
            known, packet = self._sent.popitem(last=False)
        self._played, self.echo_at = timestamp, now
        return packet

    def take_next(self, now: float) -> bytes:
        """Return the packet after the last one that was taken: that of a frame which was lost on its way."""
        return self.take(self._played + self._frame_ms, now) if self._played else b""

    def check(self, now: float, *, speaking: bool) -> None:
        """Forget all packets when no answer was spoken for so long that the device has played them."""
        if speaking:
            self._until = now + KEPT_SECONDS
        elif self._sent and now >= self._until:
            self._sent.clear()
            self._played = 0
