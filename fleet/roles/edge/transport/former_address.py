"""The address before the last move: a move is undone when that address goes on with what came after the move."""

from typing import Final

from fleet.roles.edge.transport.proof import LARGEST_STEP, PROVED_ELSEWHERE
from fleet.roles.edge.transport.sequential_test import SAME_TOC, begin, follow
from fleet.roles.edge.transport.socket import Address

RETURN_SECONDS: Final = 5.0
"""A move can be undone for this time."""
REST_SECONDS: Final = 60.0
"""Time between two undone moves. Without it, an attacker who copies in the former name could undo every move."""


_BEGUN: Final = begin(SAME_TOC)


class FormerAddress:
    """Of one session."""

    __slots__ = ("_address", "_moved_at", "_newest", "_rests_until", "_scores", "_tries", "_until")

    def __init__(self) -> None:
        self._address: Address | None = None
        self._until = self._rests_until = 0.0
        self._moved_at = self._newest = self._tries = 0
        self._scores = _BEGUN

    def leave(self, address: Address | None, newest: int, now: float) -> None:
        """Note a move away from an address that had reached this number."""
        self._address = address if now >= self._rests_until else None
        self._until, self._moved_at, self._newest = now + RETURN_SECONDS, newest, 0

    def forget(self) -> None:
        """Undo no move until the next one."""
        self._address = None

    def is_at(self, address: Address, now: float) -> bool:
        return address == self._address and now < self._until

    def goes_on(self, sequence: int, now: float, *, good: bool) -> bool:
        """Take a packet of the former address whose number is used; return whether the move is undone.

        Numbers that were used before the move prove nothing: anybody may have seen those packets.
        """
        self._tries += 1
        if not good or sequence <= max(self._moved_at, self._newest):
            return False
        follows = sequence - self._newest <= LARGEST_STEP
        self._scores = follow(self._scores, self._tries - 1, SAME_TOC) if follows else _BEGUN
        self._newest, self._tries = sequence, 0
        if max(self._scores) < PROVED_ELSEWHERE:
            return False
        self._address, self._rests_until = None, now + REST_SECONDS
        return True
