"""Which unused packet makes room for another one."""

from collections.abc import Sequence
from typing import Final

from fleet.roles.edge.transport.chain import Candidate

EARLIEST: Final = 8
"""Candidates of one number that later ones do not displace: late copies come after the device's packet."""


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
    for one in reversed(ranked[EARLIEST:]):
        if one in queue:
            return one
    # Where most are guesses, the oldest one goes: the device's packets follow each other. Where most are copies, a
    # packet of the device would be the only one that nothing has followed yet.
    guesses = [one for one in queue if one.alone]
    return guesses[0] if 2 * len(guesses) > len(queue) else queue[0]
