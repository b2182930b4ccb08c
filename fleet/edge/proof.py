"""Runs of good packets: what proves that a stream comes from the device where nothing else says so.

A packet has no integrity tag. It is good when its first byte (TOC) says that it lasts as long as the device announced.
Without the key the payload is random: one forged packet in 13 (20 ms) to one in 80 (60 ms) is good, and one in 256 has
a given TOC. So a run of consecutive sequence numbers proves what one packet cannot.
"""

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from fleet.edge.socket import Address
from fleet.wire.replay import UsedNumbers

GOOD: Final = 4
"""Good packets of one TOC in a row that prove a run: 1 in 256**3 of one that is forged gets so far."""
GOOD_OF_ANY_TOC: Final = 8
"""The same where the TOC may change: 1 in 13**8."""
CHANGES: Final = 2
"""Changes of the TOC among these that show that the device does not keep it."""
GOOD_AMONG_BAD: Final = 12
"""Good packets of one TOC that prove a run although bad ones of its address came between: somebody may send in the
device's name."""
BAD_EACH: Final = 60
"""Bad packets for each good one, at most: with more of them a forger would complete a run by guessing."""
LONGEST_PAUSE: Final = 1.0
"""Seconds between two packets of a run."""
MOST_RUNS: Final = 8
"""Runs at a time from the device's address, and as many from all others."""
MOST_KEPT: Final = 64
"""Packets that a run keeps until it is proved."""
EARLIER: Final = 64
"""Numbers before a proved run whose packets from the same address are used too: a lost packet ends a run."""

Packets = list[tuple[int, bytes]]
"""Sequence numbers and payloads."""


class Packet(NamedTuple):
    """A packet that is good by itself."""

    address: Address
    sequence: int
    payload: bytes


@dataclass(slots=True)
class Run:
    """Good packets of one address with consecutive unused sequence numbers."""

    address: Address
    toc: int | None
    """First byte of all its payloads; None where it may change."""
    first: int
    next: int
    began: float
    rivals: int
    """What the stream had admitted in the usual way when the run began."""
    at: float = 0.0
    """When the last packet came."""
    good: int = 0
    bad: int = 0
    """Packets of the address that were no audio."""
    packets: Packets = field(default_factory=list)

    def proves(self, *, pinned: bool) -> bool:
        """Return whether it comes from the device; `pinned` says that a device should keep its TOC."""
        if self.toc is not None:
            return self.good >= (GOOD_AMONG_BAD if self.bad else GOOD)
        tocs = [payload[0] for _, payload in self.packets]
        changes = sum(one != other for one, other in pairwise(tocs))
        return self.good >= GOOD_OF_ANY_TOC and (not pinned or changes >= CHANGES)


class Runs:
    """The runs of one session.

    Args:
        pinned: Whether the TOC of the device stays the same.
        drops: Counts packets of runs that proved nothing, as `unproved`.
    """

    def __init__(self, drops: Counter[str], *, pinned: bool) -> None:
        self.pinned = pinned
        self.home: Address | None = None
        """Where the device is; None while that is unknown."""
        self.toc: int | None = None
        """What the device's packets begin with; None while that is unknown, or changes."""
        self._drops = drops
        self._runs: list[Run] = []

    def offer(self, packet: Packet, now: float, rivals: int, used: UsedNumbers) -> Run | None:
        """Take a good packet with an unused number; return the run that it proves.

        Args:
            packet: What came.
            now: The time.
            rivals: Packets of the session that needed no run until now.
            used: The session's numbers.
        """
        toc, proved = packet.payload[0], None
        known = [run for run in self._runs if run.address == packet.address]
        held = {run.toc: run.good for run in known if run.first <= packet.sequence < run.next}
        if self._is_changed(packet, known, held, now) or (toc in held and not self._find(known, toc, packet, now)):
            self._drops["replay"] += 1
            return None
        for kind in (toc, None) if self.pinned else (None,):
            run = self._find(known, kind, packet, now)
            if run is None and kind in held:
                continue
            run = run or self._begin(packet, kind, now, rivals)
            self._extend(run, packet, now, used)
            proved = run if proved is None and run.proves(pinned=self.pinned) else proved
        return proved

    def _is_changed(self, packet: Packet, known: list[Run], held: dict[int | None, int], now: float) -> bool:
        """Return whether a packet that came before has this number and another first byte, and a better run.

        Who sees a packet can turn its first byte into another one of the same length.
        """
        toc = packet.payload[0]
        own = self._find(known, toc, packet, now)
        least = max(1, own.good if own else 0)
        return toc != self.toc and any(good > least for kind, good in held.items() if kind not in (toc, None))

    def spoil(self, address: Address) -> None:
        """Take note of a packet of an address that is no audio."""
        for run in [run for run in self._runs if run.address == address]:
            run.bad += 1
            if run.toc is None or run.bad > BAD_EACH * run.good:
                self._drop(run)

    def good_since(self, address: Address, began: float) -> int:
        """Return how many good packets an address sent in a run that goes on since then."""
        return max((run.good for run in self._runs if run.address == address and run.at >= began), default=0)

    def take(self, run: Run) -> Packets:
        """Return a proved run's packets, and what its address sent shortly before it; forget all of them."""
        packets, others = dict(run.packets), [other for other in self._runs if other.address == run.address]
        for other in others:
            if other.toc == run.toc:
                packets.update(one for one in other.packets if run.first - EARLIER <= one[0] < run.first)
        self._runs = [other for other in self._runs if other.address != run.address]
        self._count(len({number for other in others for number, _ in other.packets} - packets.keys()), "unproved")
        return sorted(packets.items())

    @staticmethod
    def _find(known: list[Run], toc: int | None, packet: Packet, now: float) -> Run | None:
        """Return the run of this TOC that the packet continues."""
        alike = (run for run in known if run.toc == toc and run.next == packet.sequence)
        return next((run for run in alike if now - run.at <= LONGEST_PAUSE), None)

    def _begin(self, packet: Packet, toc: int | None, now: float, rivals: int) -> Run:
        for run in [run for run in self._runs if now - run.at > LONGEST_PAUSE]:
            self._drop(run)
        # Strangers do not push out the runs of the device's address.
        alike = [run for run in self._runs if (run.address == self.home) == (packet.address == self.home)]
        if len(alike) >= MOST_RUNS:
            # Who only guesses has runs of one packet.
            self._drop(min(alike, key=lambda run: (run.good, run.at)))
        self._runs.append(Run(packet.address, toc, packet.sequence, packet.sequence, now, rivals))
        return self._runs[-1]

    def _extend(self, run: Run, packet: Packet, now: float, used: UsedNumbers) -> None:
        run.next, run.at, run.good = used.next_unused(packet.sequence), now, run.good + 1
        run.packets.append((packet.sequence, packet.payload))
        if len(run.packets) > MOST_KEPT:
            del run.packets[0]
            self._count(int(self._is_counted(run)), "unproved")

    def _drop(self, run: Run) -> None:
        self._runs.remove(run)
        self._count(len(run.packets) * self._is_counted(run), "unproved")

    def _is_counted(self, run: Run) -> bool:
        """Return whether its packets count: where the TOC is pinned each of them is in two runs."""
        return run.toc is not None or not self.pinned

    def _count(self, packets: int, reason: str) -> None:
        if packets:
            self._drops[reason] += packets
