"""A sequential probability ratio test: how many packets prove what one of them cannot.

A chain of packets has a score. Each good packet adds to it, each other packet of the same address takes from it, and it
never falls below that of a new chain. A score of s is reached by guessing once in e^s packets, however the packets are
spread over time, numbers and addresses (Wald 1945). The test runs for several
shares of good packets side by side, so that a flood in the device's name makes a proof longer and does not prevent it.
"""

from functools import cache
from math import log
from typing import Final, NamedTuple

SHARES: Final = (0.9, 1 / 6, 1 / 31, 1 / 120)
"""Shares of good packets among those of an address that the test looks for; 1 in 31 is a flood of 500 a second."""
SHARES_ANY: Final = (0.9, 1 / 2, 1 / 4, 1 / 8)
"""The same where the TOC may change; those count that are well above the share of lucky guesses."""
LIVE_SHARE: Final = 1 / 60
"""Share of the device's packets in a live stream."""
_CHANCES: Final = {40: 1 / 9}
_LONG_FRAMES: Final = 60


def chance_of_length(frame_ms: int) -> float:
    """Return the largest share of random payloads that last so many milliseconds; their length matters a little."""
    return 1 / 28 if frame_ms >= _LONG_FRAMES else _CHANCES.get(frame_ms, 1 / 6)


class SequentialTest(NamedTuple):
    """One sequential test: what a good packet adds to the score, and what another one takes from it."""

    gain: float
    cost: float

    @classmethod
    def for_share(cls, share: float, chance: float) -> "SequentialTest":
        return cls(log(share / chance), log((1 - chance) / (1 - share)))


Tests = tuple[SequentialTest, ...]
Scores = tuple[float, ...]


def begin(tests: Tests) -> Scores:
    """Return the scores of one good packet."""
    return tuple([test.gain for test in tests])


def follow(scores: Scores, others: int, tests: Tests) -> Scores:
    """Return a chain's scores after one more good packet, with so many others of its address before it."""
    return tuple([max(score - others * test.cost, 0.0) + test.gain for score, test in zip(scores, tests, strict=True)])


SAME_TOC: Final = tuple(SequentialTest.for_share(share, 1 / 256) for share in SHARES)
"""Of packets with one TOC."""


@cache  # there are few frame lengths, and every session asks
def any_toc(frame_ms: int) -> Tests:
    """Return the tests of packets of which only the length counts."""
    chance = chance_of_length(frame_ms)
    return tuple(SequentialTest.for_share(share, chance) for share in SHARES_ANY if share > 1.4 * chance)


@cache  # there are few frame lengths, and every session asks
def live_test(frame_ms: int, *, pinned: bool) -> SequentialTest:
    """Return the test that goes on while a stream is live."""
    if pinned:
        return SequentialTest.for_share(LIVE_SHARE, 1 / 256)
    return SequentialTest.for_share(1 / 4 if frame_ms < _LONG_FRAMES else 1 / 8, chance_of_length(frame_ms))
