"""Puts a session's packets in order, waiting a little for those that are missing."""

MOST_HELD = 3
"""Packets that wait for a missing one."""
LONGEST_WAIT = 0.120
"""Seconds that they wait, counted when another packet comes: packets of a listening device never cease."""
MOST_FILLED = 10
"""Lost frames that silence is put in for; a longer gap is no jitter, and its length says nothing."""
ENOUGH_TO_TELL_LOSS = 20
"""Packets after which the share of lost ones says something."""


class JitterBuffer:
    """Releases payloads by sequence number; None stands for a frame that was lost."""

    def __init__(self) -> None:
        self._next = 1
        self._held: dict[int, bytes] = {}
        self._since = 0.0
        self.lost = 0
        """Frames given up."""
        self.late = 0
        """Packets that came after they were given up."""

    @property
    def loss(self) -> float:
        """Share of the packets that were lost, rather too high than too low; 0 until enough came to know."""
        known = self.lost and self.released >= ENOUGH_TO_TELL_LOSS
        return (self.lost + 1) / self.released if known else 0.0

    @property
    def released(self) -> int:
        """Frames that have had their turn, lost ones too."""
        return self._next - 1

    def next(self, sequence: int) -> bool:
        """Whether a packet that came is the next one and nothing waits: it is released at once, and counted so."""
        if sequence == self._next and not self._held:
            self._next = sequence + 1
            return True
        return False

    def push(self, sequence: int, payload: bytes, now: float) -> list[bytes | None]:
        """Take one packet, each sequence number at most once; return what is released by it."""
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
            # Those that still wait do so for another packet.
            self._since = now
        if self._held and (len(self._held) > MOST_HELD or now - self._since >= LONGEST_WAIT):
            released += self._skip()
            self._since = now
        return released

    def rejoin(self, sequence: int) -> list[bytes | None]:
        """Go on with this number, which may be one that was passed by; return what was held until now in that case."""
        if sequence >= self._next:
            return []
        released = self.flush()
        self._next = sequence
        return released

    def flush(self) -> list[bytes | None]:
        """Give up all that is missing; return all that is held."""
        released: list[bytes | None] = []
        while self._held:
            released += self._skip()
        return released

    def _consecutive(self) -> list[bytes | None]:
        released: list[bytes | None] = []
        while self._next in self._held:
            released.append(self._held.pop(self._next))
            self._next += 1
        return released

    def _skip(self) -> list[bytes | None]:
        first = min(self._held)
        missing = first - self._next
        # Before the first packet there is nothing to keep in time.
        filled = 0 if self._next == 1 else min(missing, MOST_FILLED)
        self.lost += missing
        self._next = first
        return [None] * filled + self._consecutive()
