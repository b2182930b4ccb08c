"""Rivals."""

from itertools import pairwise

from fleet.roles.edge.transport.chain import Candidate, Chain
from fleet.roles.edge.transport.rivals import MOST_REMEMBERED, SentNumbers, may_be_copy
from tests.support.audio_air import AWAY, HOME, TOCS, Address


def sent(number: int, address: Address, toc: int = TOCS[60], length: int = 1) -> Candidate:
    none = Chain(None, 0.0, 0, ())
    return Candidate(address, number, bytes([toc]) * length, 0.0, 0, 1, none, Chain(None, 0.0, 0, ()))


def test_the_first_sender_of_a_chains_numbers_is_remembered() -> None:
    known, chain = SentNumbers(), [sent(number, HOME) for number in (5, 6, 7)]
    for before, one in pairwise(chain):
        one.same = Chain(before, 0.0, 0, ())
    known.note(chain[-1])
    known.note(sent(6, AWAY))
    assert [known.sender(sent(number, AWAY)) for number in (4, 5, 6, 7)] == [AWAY, HOME, HOME, HOME]


def test_the_oldest_numbers_are_forgotten() -> None:
    known = SentNumbers()
    for number in range(MOST_REMEMBERED + 1):
        known.note(sent(number, HOME))
    assert [known.sender(sent(number, AWAY)) for number in (0, 1)] == [AWAY, HOME]


def test_only_a_changed_first_byte_shows_that_a_packet_with_the_usual_one_is_no_copy() -> None:
    usual = TOCS[60]
    genuine, changed = sent(1, HOME), sent(1, AWAY, usual ^ 1)
    assert may_be_copy(changed, genuine, usual)
    assert not may_be_copy(genuine, changed, usual)
    assert may_be_copy(genuine, changed, None)


def test_a_packet_of_another_length_is_no_copy() -> None:
    assert not may_be_copy(sent(1, AWAY, length=31), sent(1, HOME), None)
