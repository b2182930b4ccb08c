"""What shows that a packet is a copy of one that another address sent."""

from typing import Final

from fleet.roles.edge.transport.chain import Candidate
from fleet.roles.edge.transport.socket import Address

MOST_REMEMBERED: Final = 128
"""Numbers that are remembered after their chain was forgotten."""


class SentNumbers:
    """Who sent which numbers in chains that may never be proved: who sends them later has only seen them."""

    def __init__(self) -> None:
        self._senders: dict[int, Address] = {}
        """The newest last."""

    def note(self, last: Candidate) -> None:
        """Remember the numbers of a chain with one TOC."""
        one: Candidate | None = last
        while one and one.sequence not in self._senders:
            self._senders[one.sequence] = one.address
            one = one.same.before
        while len(self._senders) > MOST_REMEMBERED:
            del self._senders[next(iter(self._senders))]

    def sender(self, one: Candidate) -> Address:
        """Return who sent a candidate's number first; its own address if nobody is remembered."""
        return self._senders.get(one.sequence, one.address)


def may_be_copy(one: Candidate, rival: Candidate, usual_toc: int | None) -> bool:
    """Return whether a packet may be a copy of a rival with its number; its sender can change the TOC and all after it.

    A copy has the length of what it copies: the length is in the header, so the payload is random under another one.

    Args:
        one: The packet.
        rival: A packet from another address.
        usual_toc: What the device's packets begin with; None where that changes.
    """
    same_length = len(rival.payload) == len(one.payload)
    return same_length and (usual_toc is None or rival.toc == one.toc or one.toc != usual_toc)
