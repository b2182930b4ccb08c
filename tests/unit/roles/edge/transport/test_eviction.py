from dataclasses import replace
from itertools import count

from fleet.roles.edge.transport.chain import Candidate, Chain
from fleet.roles.edge.transport.eviction import EARLIEST, EARLIEST_USUAL, least_useful

NONE = Chain(None, 0.0, 0, ())
USUAL, OTHER = 0x58, 0x5C
PORTS = count(1)


def candidates(many: int, toc: int = USUAL, *, alone: bool = True) -> list[Candidate]:
    return [
        Candidate(("192.0.2.1", next(PORTS)), 1, bytes((toc,)), 0.0, 0, 1, NONE, NONE, alone=alone) for _ in range(many)
    ]


def test_the_newest_of_many_copies_goes_and_the_earliest_stay() -> None:
    for usual, earliest in ((USUAL, EARLIEST_USUAL), (None, EARLIEST)):
        for alone in (True, False):
            copies, others = candidates(earliest + 3, alone=alone), candidates(2)
            assert least_useful([*others, *copies], copies, usual) is copies[-1]
        assert least_useful([*others, *copies[:earliest]], copies, usual) is others[0]


def test_guesses_with_another_first_byte_go_before_copies_that_came_later() -> None:
    guesses, copies = candidates(EARLIEST + 3, OTHER), candidates(2)
    alike = [*guesses, *copies]
    assert least_useful(alike, alike, USUAL) is guesses[-1]
    assert least_useful(alike, alike, None) is copies[-1]


def test_of_guesses_the_oldest_goes_and_of_chains_the_oldest_packet() -> None:
    followed, guesses = candidates(3, alone=False), candidates(4)
    assert least_useful([*followed, *guesses], [], USUAL) is guesses[0]
    assert least_useful([*followed, *guesses[:2]], [], USUAL) is followed[0]


def test_another_first_byte_goes_first_then_a_number_that_its_address_sent_twice() -> None:
    chain, other = candidates(4, alone=False), candidates(1, OTHER)
    again = replace(chain[1])
    assert least_useful([*chain, again, *other], [], USUAL) is other[0]
    assert least_useful([*chain, again], [], USUAL) is again
    assert least_useful([*chain, again, *other], [], None) is chain[0]
