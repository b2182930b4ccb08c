from fleet.roles.edge.transport.chain import Candidate, Chain
from fleet.roles.edge.transport.eviction import EARLIEST, least_useful

NONE = Chain(None, 0.0, 0, ())


def candidates(count: int, *, alone: bool = True) -> list[Candidate]:
    return [Candidate(("192.0.2.1", port), 1, b"", 0.0, 0, 1, NONE, NONE, alone=alone) for port in range(count)]


def test_the_newest_of_many_copies_goes_and_the_earliest_stay() -> None:
    copies, others = candidates(EARLIEST + 3), candidates(2)
    assert least_useful([*others, *copies], copies) is copies[-1]
    assert least_useful([*others, *copies[:EARLIEST]], copies) is others[0]


def test_a_packet_that_another_one_follows_stays() -> None:
    copies = candidates(EARLIEST + 3)
    copies[-1].alone = False
    assert least_useful(copies, copies) is copies[-2]


def test_of_guesses_the_oldest_goes_and_of_chains_the_oldest_packet() -> None:
    followed, guesses = candidates(3, alone=False), candidates(4)
    assert least_useful([*followed, *guesses], []) is guesses[0]
    assert least_useful([*followed, *guesses[:2]], []) is followed[0]
