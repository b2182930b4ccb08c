"""The sequential test: what a guess is worth, and how many packets prove a stream."""

from collections import Counter
from math import exp
from random import Random

import pytest

from fleet.roles.edge.transport import proof
from fleet.roles.edge.transport.proof import SAME_TOC, Candidates, SequentialTest, begin, chance_of_length, follow
from fleet.wire import toc

ANY_TOC = [
    (chance, SequentialTest.for_share(share, chance))
    for chance in {chance_of_length(frame_ms) for frame_ms in toc.FRAME_MS}
    for share in proof.SHARES_ANY
    if share > 1.4 * chance
]


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
    while max(scores) < proof.PROVED_ELSEWHERE:
        scores, count = follow(scores, others, SAME_TOC), count + 1
    assert count == packets


def test_two_hundred_thousand_guesses_prove_nothing() -> None:
    """As many as 500 a second are in seven minutes, each with the number that helps most."""
    random, drops = Random(5), Counter[str]()
    candidates, number, proofs = Candidates(60, drops, pinned=True), 0, 0
    for tick in range(200_000):
        candidates.spoil(("192.0.2.1", 1))
        if random.random() < 1 / 256:
            number += 1
            packet = proof.GoodPacket(("192.0.2.1", 1), number, b"\x58" + random.randbytes(4))
            proofs += candidates.offer(packet, tick / 500, 0) is not None
    assert proofs == 0
