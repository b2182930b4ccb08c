"""Which unused packet makes room for another one."""

from collections.abc import Sequence
from typing import Final

from fleet.roles.edge.transport.chain import Candidate
from fleet.roles.edge.transport.socket import Address

EARLIEST: Final = 8
"""Candidates of one number that later ones do not displace: late copies come after the device's packet."""
EARLIEST_USUAL: Final = 2
"""The same where the TOC is known: few guesses come before the device's packet, and the room holds more numbers."""


def least_useful(queue: Sequence[Candidate], alike: Sequence[Candidate], usual_toc: int | None) -> Candidate:
    """Return the candidate that a full queue can do without.

    Args:
        queue: Candidates in the order in which they came.
        alike: Those of the number that most of them have, in the same order; some may be in another queue.
        usual_toc: What the device's packets begin with; None where that changes.
    """
    # Linked or alone: many copies of one number can all follow one copy of the number before. With another TOC a guess
    # costs a tenth, so such candidates go first.
    ranked = sorted(alike, key=lambda one: usual_toc is not None and one.toc != usual_toc)
    for one in reversed(ranked[EARLIEST if usual_toc is None else EARLIEST_USUAL :]):
        if one in queue:
            return one
    if usual_toc is not None and (seldom := _seldom_of_device(queue, usual_toc)):
        return seldom
    # Where most are guesses, the oldest one goes: the device's packets follow each other. Where most are copies, a
    # packet of the device would be the only one that nothing has followed yet.
    guesses = [one for one in queue if one.alone]
    return guesses[0] if 2 * len(guesses) > len(queue) else queue[0]


def of_other_toc(own: Sequence[Candidate], toc: int) -> Candidate | None:
    """Return the newest candidate of a packet's number and address with another TOC, which the packet may displace.

    Otherwise changed copies that come first in the device's name would leave nothing that shows late copies.
    """
    return next((one for one in reversed(own) if one.toc != toc), None)


def _seldom_of_device(queue: Sequence[Candidate], usual_toc: int) -> Candidate | None:
    """Return the oldest candidate with another TOC, or else the oldest one whose number its address sent before.

    Guesses and changed copies with so many numbers that none is common would crowd out what shows late copies.
    """
    if other := next((one for one in queue if one.toc != usual_toc), None):
        return other
    sent = set[tuple[Address, int]]()
    for one in queue:
        if (sender := (one.address, one.sequence)) in sent:
            return one
        sent.add(sender)
    return None
