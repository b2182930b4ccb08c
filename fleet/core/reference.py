"""What a device's loudspeaker played while its microphone heard something, for the cancellation of its echo.

A build with `aec` sends with each frame of its microphone the timestamp of the packet that it had just played.
"""

from collections import OrderedDict
from dataclasses import dataclass

KEPT_SECONDS = 3.0
"""The queue of a device holds at most 40 packets of 60 ms."""
BEHIND, AHEAD = 4, 6
"""Packets that are known around the one that a device has played: its timestamps may be wrong by some frames."""


@dataclass(frozen=True, slots=True)
class Played:
    """What a device says that it had just played."""

    index: int = 0
    """The number of the packet; 0 if nothing was played."""
    packets: tuple[tuple[int, bytes], ...] = ()
    """That packet and its neighbours with their numbers, rising."""
    at: float = 0.0
    """When the edge was told so, on its clock."""


NOTHING = Played()


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
        self.echo_at = 0.0
        """When the last frame came in which there may be an echo."""

    def note_sent(self, timestamp: int, packet: bytes) -> None:
        """Take a packet that was sent; timestamps rise by the length of a packet."""
        self._sent[timestamp // self._frame_ms] = packet
        if len(self._sent) > self._most:
            self._sent.popitem(last=False)

    def find(self, timestamp: int, now: float) -> Played:
        """Return the packet with this timestamp and its neighbours; `NOTHING` if it is not known.

        Args:
            timestamp: That a frame of the microphone carries, in milliseconds; 0 if nothing was played.
            now: The time.
        """
        index, rest = divmod(timestamp, self._frame_ms)
        if rest or index not in self._sent:
            return NOTHING
        self.echo_at = now
        around = range(index - BEHIND, index + AHEAD + 1)
        return Played(index, tuple((number, self._sent[number]) for number in around if number in self._sent), now)

    def check(self, now: float, *, speaking: bool) -> None:
        """Forget all packets when no answer was spoken for so long that the device has played them."""
        if speaking:
            self._until = now + KEPT_SECONDS
        elif self._sent and now >= self._until:
            self._sent.clear()
