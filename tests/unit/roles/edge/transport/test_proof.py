"""Guesses that help each other as much as they can prove nothing."""

from collections import Counter
from random import Random

from fleet.roles.edge.transport.chain import GoodPacket
from fleet.roles.edge.transport.proof import Candidates


def test_two_hundred_thousand_guesses_prove_nothing() -> None:
    """As many as 500 a second are in seven minutes, each with the number that helps most."""
    random, drops = Random(5), Counter[str]()
    candidates, number, proofs = Candidates(60, drops, pinned=True), 0, 0
    for tick in range(200_000):
        candidates.spoil(("192.0.2.1", 1))
        if random.random() < 1 / 256:
            number += 1
            packet = GoodPacket(("192.0.2.1", 1), number, b"\x58" + random.randbytes(4))
            proofs += candidates.offer(packet, tick / 500, 0) is not None
    assert proofs == 0
