"""The packets of an answer that wait to be sent, and the sentences that begin with them."""

from collections import deque
from collections.abc import Sequence

MOST_PACKETS = 1000
"""Packets that may wait: a minute of audio. A voice that is ahead by more waits for room."""


class PacketQueue:
    """The waiting packets of one answer, and its sentences that have not begun."""

    __slots__ = ("_sentences", "added", "begins_at", "packets")

    def __init__(self) -> None:
        self.packets: deque[bytes] = deque()
        self.added = 0
        """Packets that were added since the answer began."""
        self._sentences: deque[tuple[int, int]] = deque()
        """Sentences that have not begun, each after the number of packets before it."""
        self.begins_at: int | None = None
        """The number of packets before the next sentence; None if none waits."""

    def __len__(self) -> int:
        return len(self.packets)

    @property
    def room(self) -> int:
        """How many more packets may be added."""
        return MOST_PACKETS - len(self.packets)

    @property
    def sent(self) -> int:
        """Packets that were taken."""
        return self.added - len(self.packets)

    def add(self, packets: Sequence[bytes]) -> None:
        """Add packets, no more than there is `room` for."""
        self.packets.extend(packets)
        self.added += len(packets)

    def add_sentence(self, sentence: int) -> None:
        """Note that the next packet that is added begins a sentence."""
        self._sentences.append((self.added, sentence))
        self.begins_at = self._sentences[0][0]

    def take_sentences(self) -> tuple[int, ...]:
        """Return the sentences that begin with the next packet."""
        taken: tuple[int, ...] = ()
        while self.begins_at == self.sent:
            taken += (self._sentences.popleft()[1],)
            self.begins_at = self._sentences[0][0] if self._sentences else None
        return taken
