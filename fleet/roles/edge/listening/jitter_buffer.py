"""Put a session's packets in order, and wait a little for missing ones."""

from dataclasses import dataclass

MOST_HELD = 3
"""Packets that wait for a missing one."""
LONGEST_WAIT = 0.120
"""Seconds that they wait. It is checked when a packet comes: a listening device sends without pause."""
MOST_FILLED = 10
"""Lost frames that are replaced by silence; a longer gap is not jitter, and is not filled further."""
MIN_PACKETS_FOR_LOSS = 20
"""Packets after which the share of lost packets is meaningful."""


@dataclass(frozen=True, slots=True)
class StampedPacket:
    """A packet of a device whose echo the server cancels."""

    packet: bytes
    timestamp: int
    """Of the packet that the device had just played, in milliseconds; 0 if there was none."""


Payload = bytes | StampedPacket


class JitterBuffer:
    """Releases payloads by sequence number; None stands for a frame that was lost."""

    __slots__ = ("_held", "_next", "_since", "late", "lost")

    def __init__(self) -> None:
        self._next = 1
        self._held: dict[int, Payload] = {}
        self._since = 0.0
        self.lost = 0
        """Frames that are counted as lost."""
        self.late = 0
        """Packets that came after they were counted as lost."""

    @property
    def loss(self) -> float:
        """Share of lost packets, an upper estimate; 0 until `MIN_PACKETS_FOR_LOSS` packets were released."""
        known = self.lost and self.released >= MIN_PACKETS_FOR_LOSS
        return (self.lost + 1) / self.released if known else 0.0

    @property
    def released(self) -> int:
        """Frames released, lost ones included."""
        return self._next - 1

    def next(self, sequence: int) -> bool:
        """Return whether a packet can be released at once, because it is the next and none waits; if so, count it."""
        if sequence == self._next and not self._held:
            self._next = sequence + 1
            return True
        return False

    def push(self, sequence: int, payload: Payload, now: float) -> list[Payload | None]:
        """Take one packet, each sequence number at most once; return the payloads that are released now."""
        if self.next(sequence):
            return [payload]
        if sequence < self._next:
            self.late += 1
            return []
        if not self._held:
            self._since = now
        self._held[sequence] = payload
        released = self._consecutive()
        if released:
            # The packets that still wait do so for another missing packet, so their time begins now.
            self._since = now
        if self._held and (len(self._held) > MOST_HELD or now - self._since >= LONGEST_WAIT):
            released += self._skip()
            self._since = now
        return released

    def rejoin(self, sequence: int) -> list[Payload | None]:
        """Continue with this number; if it is a lower one, return all that was held."""
        if sequence >= self._next:
            return []
        released = self.flush()
        self._next = sequence
        return released

    def flush(self) -> list[Payload | None]:
        """Count all missing packets as lost; return all that is held."""
        released: list[Payload | None] = []
        while self._held:
            released += self._skip()
        return released

    def _consecutive(self) -> list[Payload | None]:
        released: list[Payload | None] = []
        while self._next in self._held:
            released.append(self._held.pop(self._next))
            self._next += 1
        return released

    def _skip(self) -> list[Payload | None]:
        first = min(self._held)
        missing = first - self._next
        # Before the first packet no gap has to be filled.
        filled = 0 if self._next == 1 else min(missing, MOST_FILLED)
        self.lost += missing
        self._next = first
        return [None] * filled + self._consecutive()
