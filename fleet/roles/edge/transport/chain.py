"""Good packets that follow each other, and what is known of them."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from fleet.roles.edge.transport.sequential_test import Scores
from fleet.roles.edge.transport.socket import Address

LONGEST_CHAIN: Final = 64
"""Packets that are kept until their chain is proved."""

Packets = list[tuple[int, bytes]]
"""Sequence numbers and payloads."""


class GoodPacket(NamedTuple):
    """A packet that is good by itself."""

    address: Address
    sequence: int
    payload: bytes


@dataclass(slots=True, eq=False)
class Chain:
    """What a candidate has behind it."""

    before: "Candidate | None"
    began: float
    tries: int
    """Packets of the address until it began."""
    scores: Scores
    length: int = 1
    changes: int = 0
    """Of the TOC."""


@dataclass(slots=True, eq=False)
class Candidate:
    """A good packet that is not used yet."""

    address: Address
    sequence: int
    payload: bytes
    at: float
    admitted: int
    """What the stream had admitted in the usual way when the packet came."""
    tries: int
    """Packets of the address until then."""
    same: Chain
    """With the same TOC."""
    any: Chain
    """With any TOC."""
    alone: bool = True
    """Whether no other candidate is in a chain with it: most guesses are so."""
    held: bool = True
    rivals: set[Address] = field(default_factory=set)
    """Other addresses that sent its number: before it, or, if it is the device's address, at any time."""

    @property
    def toc(self) -> int:
        return self.payload[0]


class Proof(NamedTuple):
    """A chain that proves its address, with its last packet; `toc` is None where it changes."""

    last: Candidate
    chain: Chain
    toc: int | None

    def back(self, packets: int) -> Candidate:
        """Return the candidate so many packets before the last, or the first of the chain."""
        one = self.last
        for _ in range(packets):
            earlier = (one.any if self.toc is None else one.same).before
            if earlier is None:
                break
            one = earlier
        return one

    def forget_before(self, packets: int) -> None:
        """Forget what lies further back: copies may go on as long as the session, and nothing is kept for them."""
        since = self.back(packets - 1)
        since.same.before = since.any.before = None


def cut(chain: Chain, *, same: bool) -> None:
    """Forget what lies so far behind a chain's end that it is not kept."""
    for _ in range(LONGEST_CHAIN - 2):
        if chain.before is None:
            return
        chain = chain.before.same if same else chain.before.any
    chain.before = None
