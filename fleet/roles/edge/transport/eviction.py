"""Which unused packet makes room for another one."""

from collections.abc import Sequence
from typing import Final

from fleet.roles.edge.transport.chain import Candidate

EARLIEST: Final = 8
"""Candidates of one number that later ones do not displace: late copies come after the device's packet."""


def least_useful(queue: Sequence[Candidate], alike: Sequence[Candidate]) -> Candidate:
    """Return the candidate that a full queue can do without.

    Args:
        queue: Candidates in the order in which they came.
        alike: Those of the number that most of them have, in the same order; some may be in another queue.
    """
    for one in reversed(alike[EARLIEST:]):
        if one.alone and one in queue:
            return one
    # Where most are guesses, the oldest one goes: the device's packets follow each other. Where most are copies, a
    # packet of the device would be the only one that nothing has followed yet.
    guesses = [one for one in queue if one.alone]
    return guesses[0] if 2 * len(guesses) > len(queue) else queue[0]
