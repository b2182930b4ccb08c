"""What a guess is worth, and how many packets prove a stream."""

from math import exp
from random import Random

import pytest

from fleet.roles.edge.transport.proof import PROVED_ELSEWHERE
from fleet.roles.edge.transport.sequential_test import (
    SAME_TOC,
    SequentialTest,
    any_toc,
    begin,
    chance_of_length,
    follow,
)
from fleet.wire import toc

ANY_TOC = [(chance_of_length(frame_ms), test) for frame_ms in (20, 60) for test in any_toc(frame_ms)]


@pytest.mark.parametrize(("chance", "test"), [*((1 / 256, test) for test in SAME_TOC), *ANY_TOC])
def test_guessing_raises_no_score_on_average(chance: float, test: SequentialTest) -> None:
    assert test.gain > 0
    assert test.cost > 0
    assert chance * exp(test.gain) + (1 - chance) * exp(-test.cost) == pytest.approx(1.0)


@pytest.mark.parametrize("frame_ms", toc.FRAME_MS)
def test_no_more_random_payloads_than_that_have_the_right_length(frame_ms: int) -> None:
    random, tries = Random(frame_ms), 20_000
    right = sum(toc.duration_ms(random.randbytes(random.randint(4, 90))) == frame_ms for _ in range(tries))
    assert right / tries < chance_of_length(frame_ms) * 1.05


@pytest.mark.parametrize(("others", "packets"), [(0, 4), (1, 6), (30, 17)])
def test_so_many_packets_prove_a_new_address(others: int, packets: int) -> None:
    scores, count = begin(SAME_TOC), 1
    while max(scores) < PROVED_ELSEWHERE:
        scores, count = follow(scores, others, SAME_TOC), count + 1
    assert count == packets
