"""Chains of good packets: what proves that a stream comes from the device where nothing else says so.

A packet has no integrity tag. It is good when its first byte (TOC) says that it lasts as long as the device announced.
Without the key the payload is random: one forged packet in 13 (20 ms) to one in 80 (60 ms) is good, and one in 256 has
a given TOC. So good packets with following numbers prove together what one of them cannot.

A forger may try: where an address sends others between its good packets, more of these are needed. Who tries at most so
often for each packet is right with a known chance, so that every level of `SAME_TOC` and `ANY_TOC` is as hard to guess.
A flood makes a proof longer; only far above 2,000 packets a second does it prevent one. Copies of genuine packets add
nothing to a flood: they hold at most `MOST_HOLDERS` places a number, and when there is no room the lowest numbers go.
No copy has a higher number than the device's newest packet.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from fleet.roles.edge.transport.socket import Address

SAME_TOC: Final = ((1, 3), (40, 12), (96, 22), (160, 45))
"""Tries for one packet, and how many packets have to follow the first one: 256 to the power of 3 is 24 bits, (256 / 40)
to the power of 12 and the other levels are 30 to 32."""
ANY_TOC: Final = ((1, 7), (4, 18))
"""The same where the TOC may change: a try is right once in 13 times."""
CHANGES: Final = 2
"""Changes of the TOC in a chain that show that the device does not keep it."""
LONGEST_PAUSE: Final = 1.0
"""Seconds between two packets of a chain."""
GUESS_SECONDS: Final = 0.3
"""After this time a first packet that no other one follows gives up its place."""
LARGEST_STEP: Final = 3
"""From one number of a chain to the next: packets get lost."""
MOST_HOLDERS: Final = 16
"""Candidates of one number from the device's address, and as many from all others."""
MOST_HELD: Final = 96
"""Candidates of a session."""
LONGEST_CHAIN: Final = 64
"""Packets that are kept until their chain is proved."""
EARLIER: Final = 64
"""Numbers before a proved chain whose packets from the same address are used too."""
_MOST_ADDRESSES: Final = 64

Packets = list[tuple[int, bytes]]
"""Sequence numbers and payloads."""


Levels = tuple[tuple[int, int], ...]


def follow(steps: tuple[int, ...], tries: int, levels: Levels) -> tuple[int, ...]:
    """Return a chain's steps after one more packet, which came after so many tries."""
    return tuple([step + 1 if tries <= most else 0 for step, (most, _) in zip(steps, levels, strict=True)])


def reached(steps: tuple[int, ...], levels: Levels) -> bool:
    return any(step >= needed for step, (_, needed) in zip(steps, levels, strict=True))


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
    length: int = 1
    steps: tuple[int, ...] = ()
    """For each level, how many packets followed within its tries."""
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


class Candidates:
    """The unused good packets of one session.

    Args:
        pinned: Whether the TOC of the device stays the same.
        drops: Counts packets that proved nothing, as `unproved`.
    """

    def __init__(self, drops: Counter[str], *, pinned: bool) -> None:
        self.pinned = pinned
        self.home: Address | None = None
        """Where the device is; None while that is unknown."""
        self.toc: int | None = None
        """What the device's packets begin with; None while that is unknown, or changes."""
        self._drops = drops
        self._held: dict[int, list[Candidate]] = {}
        self._count = 0
        self._tries: dict[Address, int] = {}

    def offer(self, packet: GoodPacket, now: float, admitted: int) -> Proof | None:
        """Take a good packet with an unused number; return what it proves.

        Args:
            packet: What came.
            now: The time.
            admitted: Packets of the session that needed no proof until now.
        """
        if self.toc not in (None, packet.payload[0]) and packet.address != self.home:
            # A device that keeps its TOC keeps it at a new address: so guesses take up little room.
            self.spoil(packet.address)
            self._drops["unproved"] += 1
            return None
        none = Chain(None, now)
        one = Candidate(*packet, now, admitted, self._tries.get(packet.address, 0) + 1, none, none)
        one.same, one.any = self._chain(one, same=True), self._chain(one, same=False)
        rivals = self._held.get(one.sequence, [])
        if self._is_copy(one, rivals):
            self._drops["replay"] += 1
            return None
        self.spoil(one.address)
        if self._is_crowded(one, rivals):
            self._drops["unproved"] += 1
            return None
        self._hold(one, now)
        if self.pinned and reached(one.same.steps, SAME_TOC):
            return Proof(one, one.same, one.toc)
        if not reached(one.any.steps, ANY_TOC) or (self.pinned and one.any.changes < CHANGES):
            return None
        return Proof(one, one.any, None)

    def spoil(self, address: Address) -> None:
        """Count a packet of an address as a try."""
        if address not in self._tries and len(self._tries) >= _MOST_ADDRESSES:
            # The one that came first, but never the device's: its count is what holds back who forges in its name.
            oldest = iter(self._tries)
            first = next(oldest)
            del self._tries[next(oldest) if first == self.home else first]
        self._tries[address] = self._tries.get(address, 0) + 1

    def longest_since(self, address: Address, began: float) -> int:
        """Return the length of the longest chain that an address goes on with since then; guesses have short ones."""
        recent = (one for holders in self._held.values() for one in holders if one.at >= began)
        chains = (one.same if self.pinned else one.any for one in recent if one.address == address)
        return max((1 + chain.steps[1] for chain in chains), default=0)

    def take(self, proof: Proof) -> Packets:
        """Return a proof's packets, and what its address sent shortly before; forget all packets of the address."""
        packets: dict[int, bytes] = {}
        one: Candidate | None = proof.last
        while one and len(packets) < LONGEST_CHAIN:
            packets[one.sequence] = one.payload
            one = (one.any if proof.toc is None else one.same).before
        first, gone = min(packets), set[int]()
        for holders in list(self._held.values()):
            for other in [other for other in holders if other.address == proof.last.address]:
                gone.add(other.sequence)
                alike = proof.toc in (None, other.toc)
                if alike and first - EARLIER <= other.sequence < proof.last.sequence:
                    packets.setdefault(other.sequence, other.payload)
                self._forget(other)
        self._expire_old(proof.last.at)
        if unproved := len(gone - packets.keys()):
            self._drops["unproved"] += unproved
        return sorted(packets.items())

    def _is_copy(self, one: Candidate, rivals: list[Candidate]) -> bool:
        """Return whether the address sent the packet before, or its number with another TOC in a longer chain.

        Who sees a packet can turn its first byte into another one of the same length.
        """
        own = [rival for rival in rivals if rival.address == one.address]
        least = max(1, one.same.length - 1) if self.pinned and one.toc != self.toc else one.sequence
        return any(
            rival.payload == one.payload or (rival.toc != one.toc and rival.same.length > least) for rival in own
        )

    def _before(self, one: Candidate, *, same: bool) -> Iterator[Candidate]:
        """Yield the candidates that another one may follow."""
        for number in range(one.sequence - LARGEST_STEP, one.sequence):
            for before in self._held.get(number, ()):
                alike = before.address == one.address and (not same or before.toc == one.toc)
                if alike and one.at - before.at <= LONGEST_PAUSE:
                    yield before

    def _is_crowded(self, one: Candidate, rivals: list[Candidate]) -> bool:
        """Return whether a number has no place for a candidate.

        The first ones stay: who sees a packet can send as many others like it as he wants, but only after it. What
        nothing follows for a while was a guess, and makes room.
        """
        at_home = one.address == self.home
        alike = [rival for rival in rivals if (rival.address == self.home) == at_home]
        if len(alike) < MOST_HOLDERS:
            return False
        guesses = [rival for rival in alike if one.at - rival.at > GUESS_SECONDS and rival.any.length == 1]
        for rival in guesses:
            self._expire(rival)
        return not guesses

    def _chain(self, one: Candidate, *, same: bool) -> Chain:
        """Return the strongest chain that a candidate continues, or a new one."""
        levels = SAME_TOC if same else ANY_TOC
        best = Chain(None, one.at, steps=(0,) * len(levels))
        for before in self._before(one, same=same):
            chain = before.same if same else before.any
            steps = follow(chain.steps, one.tries - before.tries, levels)
            if best.before is None or chain.length >= best.length:
                best.before, best.began, best.length = before, chain.began, chain.length + 1
                best.changes = chain.changes + (before.toc != one.toc)
            best.steps = tuple(map(max, best.steps, steps))
        if best.length % LONGEST_CHAIN == 0:
            _cut(best, same=same)
        return best

    def _hold(self, one: Candidate, now: float) -> None:
        if self._count >= MOST_HELD:
            self._expire_old(now)
        self._held.setdefault(one.sequence, []).append(one)
        self._count += 1
        if self._count > MOST_HELD:
            self._expire(self._held[min(self._held)][0])

    def _expire_old(self, now: float) -> None:
        """Make room: what is too old for a chain goes."""
        for one in [one for holders in self._held.values() for one in holders if now - one.at > LONGEST_PAUSE]:
            self._expire(one)

    def _expire(self, one: Candidate) -> None:
        self._drops["unproved"] += 1
        self._forget(one)

    def _forget(self, one: Candidate) -> None:
        holders = self._held[one.sequence]
        holders.remove(one)
        self._count -= 1
        if not holders:
            del self._held[one.sequence]


def _cut(chain: Chain, *, same: bool) -> None:
    """Forget what lies so far behind a chain's end that it is not kept."""
    for _ in range(LONGEST_CHAIN - 2):
        if chain.before is None:
            return
        chain = chain.before.same if same else chain.before.any
    chain.before = None
