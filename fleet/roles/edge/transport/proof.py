"""Chains of good packets: what proves that a stream comes from the device where nothing else says so.

A packet has no integrity tag. It is good when its first byte (TOC) says that it lasts as long as the device announced.
Without the key the payload is random: one in 256 has a given TOC, and `chance_of_length` of them the right length. So
several good packets with following numbers prove together what one of them cannot.

A sequential test (`fleet.roles.edge.transport.sequential_test`) says how many are needed.

Copies of genuine packets are good, so a chain proves nothing while its numbers come from another address too
(`Candidates.is_copied`).
"""

from collections import Counter, deque
from collections.abc import Iterator
from itertools import islice
from typing import Final

from fleet.roles.edge.transport.chain import LONGEST_CHAIN, Candidate, Chain, GoodPacket, Packets, Proof, cut
from fleet.roles.edge.transport.eviction import least_useful, of_other_toc
from fleet.roles.edge.transport.rivals import SentNumbers, may_be_copy
from fleet.roles.edge.transport.sequential_test import SAME_TOC, any_toc, begin, follow
from fleet.roles.edge.transport.socket import Address
from fleet.wire.toc import empty_packet

PROVED: Final = 18.0
"""Score of a chain from the device's address that is used: e^18 is 66 million packets."""
PROVED_ELSEWHERE: Final = 21.5
"""Score of a chain from another address: 2,200 million packets. Four packets of one TOC in a row reach it."""
COMPARED: Final = 8
"""How many of the last packets of a chain are compared with what came from other addresses."""
COPIED: Final = 0.85
"""Share of the compared packets that shows a copy, where they came from the device's address and two others. Only where
the TOC changes: there guesses come before most of the device's packets."""
FIRST: Final = 3
"""Compared packets that neither the device's address nor two others sent before: a copy comes first only where the
device's packet was lost."""
REMEMBERED: Final = 14.0
"""Score of a chain whose numbers are remembered when it is never proved: three packets of one TOC in a row reach it."""
CHANGES: Final = 2
"""Changes of the TOC in a chain that show that the device does not keep it."""
LONGEST_PAUSE: Final = 1.0
"""Seconds between two packets of a chain."""
EVIDENCE_SECONDS: Final = 3.5
"""Time for which a packet shows, at 16 kHz, that later ones are copies: under 2,000 forged packets a second in the
device's name it takes 3.4 s until its chain is remembered."""
GUESS_SECONDS: Final = 0.3
"""After this time a packet that no other one follows gives up its place."""
LARGEST_STEP: Final = 3
"""From one number of a chain to the next: packets get lost."""
MOST_ALIKE: Final = 16
"""Candidates of one number from one address."""
MOST_FOLLOWED: Final = 4
"""Of these, those that a packet may follow; the device's is early among them, as copies come after it."""
MOST_HELD: Final = 128
"""Candidates from the device's address, and as many from all others."""
EARLIER: Final = 64
"""Numbers before a proved chain whose packets from the same address are used too."""


class Candidates:
    """The unused good packets of one session.

    Args:
        frame_ms: Milliseconds a packet.
        pinned: Whether the TOC of the device stays the same.
        drops: Counts packets that proved nothing, as `unproved`.
    """

    def __init__(self, frame_ms: int, drops: Counter[str], *, pinned: bool) -> None:
        self.pinned = pinned
        self.home: Address | None = None
        """Where the device is; None while that is unknown."""
        self.toc: int | None = None
        """What the device's packets begin with; None while that is unknown, or changes."""
        self.usual_toc = empty_packet(frame_ms)[0]
        """What firmware and py-xiaozhi write at 16 kHz. Who turns it into another one does not look like the device."""
        self._drops = drops
        self._any_tests = any_toc(frame_ms)
        self._held: dict[Address, dict[int, list[Candidate]]] = {}
        self._tries: dict[Address, int] = {}
        """Of the addresses that have candidates: only between two candidates does it matter."""
        self._numbers: dict[int, list[Candidate]] = {}
        """By number, from all addresses, in the order in which they came."""
        self._remembered = SentNumbers()
        """Those of chains that were strong but short, such as a tap of the button."""
        self._at_home: deque[Candidate] = deque()
        self._elsewhere: deque[Candidate] = deque()
        """In the order in which they came."""

    def offer(self, packet: GoodPacket, now: float, admitted: int) -> Proof | None:
        """Take a good packet with an unused number; return what it proves.

        Args:
            packet: What came.
            now: The time.
            admitted: Packets of the session that needed no proof until now.
        """
        address, sequence, payload = packet
        if self.toc is not None and payload[0] not in (self.toc, self.usual_toc) and address != self.home:
            # A device that keeps its TOC keeps it at a new address: so guesses take up little room. If somebody else
            # has set the TOC, the device is still heard.
            self.spoil(address)
            self._drops["unproved"] += 1
            return None
        own = self._held.get(address, {}).get(sequence, [])
        if len(own) >= MOST_ALIKE:
            other = of_other_toc(own, payload[0]) if self.pinned and payload[0] == self.usual_toc else None
            if other is None:
                self.spoil(address)
                self._drops["unproved"] += 1
                return None
            self._drop(other, self._at_home if other in self._at_home else self._elsewhere)
        one = self._candidate(packet, now, admitted)
        if self._is_copy(one, own):
            self._drops["replay"] += 1
            return None
        self.spoil(address)
        self._hold(one, now)
        if self.pinned and max(one.same.scores) >= REMEMBERED:
            self._remembered.note(one)
        return self._judge(one, PROVED if address == self.home else PROVED_ELSEWHERE)

    def _judge(self, one: Candidate, needed: float) -> Proof | None:
        """Return what a candidate proves with those before it."""
        whole = one.tries - one.any.tries + 1 == one.any.length
        if self.pinned and max(one.same.scores) >= needed:
            # Where everything that came is audio and the TOC goes back and forth, the encoder does so.
            changes = whole and one.any.changes >= CHANGES and one.any.length > one.same.length
            return Proof(one, one.any, None) if changes else Proof(one, one.same, one.toc)
        if max(one.any.scores) < needed or (self.pinned and one.any.changes < CHANGES):
            return None
        return Proof(one, one.any, None)

    def spoil(self, address: Address) -> None:
        """Count a packet of an address as a try."""
        if address in self._tries:
            self._tries[address] += 1

    def is_copied(self, proof: Proof, taken: int) -> bool:
        """Return whether a chain's last numbers came from elsewhere too.

        From the device's address half of them are enough, at any time. From it and two others together, and earlier,
        nearly all of them have to: a flood of guesses has many numbers before the device. Of a chain with one TOC,
        which guesses seldom have, all but a few are enough.

        Args:
            proof: The chain.
            taken: Packets that the device's address sent at the same time and that needed no proof.
        """
        rivals: list[set[Address]] = []
        one: Candidate | None = proof.last
        while one and len(rivals) < COMPARED:
            rivals.append(one.rivals)
            one = (one.any if proof.toc is None else one.same).before
        left = [found for found in rivals if self.home not in found]
        covered = taken + len(rivals) - len(left)
        if 2 * covered >= len(rivals):
            proof.forget_before(COMPARED)
            return True
        for _ in range(2):  # the device's port may have changed among them
            counts = Counter(address for found in left for address in found)
            most = max(counts, key=counts.__getitem__, default=None)
            covered += counts[most] if most else 0
            left = [found for found in left if most not in found]
        nearly_all = covered >= COPIED * len(rivals)
        if nearly_all:
            proof.forget_before(COMPARED)
        return nearly_all or (self.pinned and len(left) < FIRST)

    def _compare(self, one: Candidate) -> None:
        """Note who else has sent the number of a new candidate.

        The score of theirs does not matter: guesses in the device's name keep its chain weak, and not that of its copy.
        """
        usual = self.usual_toc if self.pinned else None
        for other in self._numbers.get(one.sequence, ()):
            if other.address == one.address:
                continue
            if may_be_copy(one, other, usual):
                one.rivals.add(other.address)
            if one.address == self.home and may_be_copy(other, one, usual):
                other.rivals.add(one.address)
        before = self._remembered.sender(one)
        if before != one.address:
            one.rivals.add(before)

    def take(self, proof: Proof) -> Packets:
        """Return a proof's packets, and what its address sent shortly before; forget all packets of the address."""
        packets: dict[int, bytes] = {}
        one: Candidate | None = proof.last
        while one and len(packets) < LONGEST_CHAIN:
            packets[one.sequence] = one.payload
            one = (one.any if proof.toc is None else one.same).before
        first, gone = min(packets), set[int]()
        for alike in list(self._held.get(proof.last.address, {}).values()):
            for other in list(alike):
                gone.add(other.sequence)
                fits = proof.toc in (None, other.toc) and proof.chain.began - other.at <= LONGEST_PAUSE
                if fits and first - EARLIER <= other.sequence < proof.last.sequence:
                    packets.setdefault(other.sequence, other.payload)
                self._forget(other)
        if unproved := len(gone - packets.keys()):
            self._drops["unproved"] += unproved
        return sorted(packets.items())

    def _candidate(self, packet: GoodPacket, now: float, admitted: int) -> Candidate:
        none = Chain(None, now, 0, ())
        one = Candidate(*packet, now, admitted, self._tries.get(packet.address, 0) + 1, none, none)
        one.same, one.any = self._chain(one, same=True), self._chain(one, same=False)
        self._compare(one)
        return one

    def _is_copy(self, one: Candidate, own: list[Candidate]) -> bool:
        """Return whether the address sent the packet before, or its number with another TOC in a longer chain.

        Who sees a packet can turn its first byte into another one of the same length.
        """
        changed = self.pinned and one.toc not in (self.toc, self.usual_toc)
        least = max(1, one.same.length - 1) if changed else one.sequence
        return any(
            rival.payload == one.payload or (rival.toc != one.toc and rival.same.length > least) for rival in own
        )

    def _before(self, one: Candidate, *, same: bool) -> Iterator[Candidate]:
        """Yield the candidates that another one may follow."""
        held = self._held.get(one.address)
        if not held:
            return
        for number in range(one.sequence - LARGEST_STEP, one.sequence):
            fitting = (
                before
                for before in held.get(number, ())
                if (not same or before.toc == one.toc) and one.at - before.at <= LONGEST_PAUSE
            )
            yield from islice(fitting, MOST_FOLLOWED)

    def _chain(self, one: Candidate, *, same: bool) -> Chain:
        """Return the strongest chain that a candidate continues, or a new one."""
        tests = SAME_TOC if same else self._any_tests
        best = Chain(None, one.at, one.tries, begin(tests))
        for before in self._before(one, same=same):
            chain = before.same if same else before.any
            scores = follow(chain.scores, one.tries - before.tries - 1, tests)
            if best.before is None or chain.length >= best.length:
                best.before, best.began, best.tries, best.length = before, chain.began, chain.tries, chain.length + 1
                best.changes = chain.changes + (before.toc != one.toc)
            best.scores = tuple(map(max, best.scores, scores))
        if best.length % LONGEST_CHAIN == 0:
            cut(best, same=same)
        return best

    def _hold(self, one: Candidate, now: float) -> None:
        queue = self._at_home if one.address == self.home else self._elsewhere
        self._expire(queue, now)
        if len(queue) >= MOST_HELD:
            own = self._held.get(one.address, {}) if self.pinned else {}
            numbers = self._numbers if queue is self._elsewhere else own
            alike = max(numbers.values(), key=len, default=[])
            self._drop(least_useful(queue, alike, self.usual_toc if self.pinned else None), queue)
        queue.append(one)
        self._tries[one.address] = one.tries
        self._held.setdefault(one.address, {}).setdefault(one.sequence, []).append(one)
        self._numbers.setdefault(one.sequence, []).append(one)
        if before := (one.same if self.pinned else one.any).before:
            before.alone = one.alone = False

    def _expire(self, queue: deque[Candidate], now: float) -> None:
        """Forget what is too old for a chain, and guesses that nothing has followed."""
        longest = EVIDENCE_SECONDS if self.pinned else LONGEST_PAUSE
        while queue:
            oldest = queue[0]
            if oldest.held and now - oldest.at <= (GUESS_SECONDS if oldest.alone else longest):
                return
            self._drop(oldest, queue)

    def _drop(self, one: Candidate, queue: deque[Candidate]) -> None:
        if one is queue[0]:
            queue.popleft()
        else:
            queue.remove(one)
        if one.held:
            self._drops["unproved"] += 1
            self._forget(one)

    def _forget(self, one: Candidate) -> None:
        one.held = False
        numbers = self._held[one.address]
        alike = numbers[one.sequence]
        alike.remove(one)
        if not alike:
            del numbers[one.sequence]
        if not numbers:
            del self._held[one.address], self._tries[one.address]
        senders = self._numbers[one.sequence]
        senders.remove(one)
        if not senders:
            del self._numbers[one.sequence]
