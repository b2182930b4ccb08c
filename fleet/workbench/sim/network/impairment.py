"""What the simulated network does to datagrams of one direction: loss, duplicates, reordering, delay."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from fleet.workbench.sim.network.faults import Faults
from fleet.workbench.sim.network.latency import Latency

_OVERTAKEN = (0.07, 0.13)
"""Seconds that a datagram is held back so that one or two of 60 ms come before it."""
_DOUBLED = (0.001, 0.05)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One copy of a datagram: how many seconds later it comes, and whether it was held back to be overtaken."""

    delay: float
    late: bool = False


class Impairment:
    """One direction between the device and the network.

    Args:
        faults: What goes wrong.
        chance: Random numbers.
        latency: Delay of all packets; none without it.
    """

    def __init__(self, faults: Faults, chance: random.Random, latency: Latency | None = None) -> None:
        self._faults = faults
        self._chance = chance
        self._latency = latency

    @property
    def calm(self) -> bool:
        """Whether every datagram arrives once, at once."""
        return self._latency is None and not self._faults.udp

    def carry(self, now: float) -> Iterator[Arrival]:
        """Yield the copies of a datagram that is sent now; none when it is lost."""
        if self.calm:
            yield Arrival(0.0)
            return
        delay = self._latency.delay(now) if self._latency else 0.0
        if self._happens(self._faults.loss):
            return
        held = self._happens(self._faults.reorder)
        yield Arrival(delay + (self._chance.uniform(*_OVERTAKEN) if held else 0.0), held)
        if self._happens(self._faults.duplicate):
            yield Arrival(delay + self._chance.uniform(*_DOUBLED))

    def _happens(self, share: float) -> bool:
        return share > 0 and self._chance.random() < share
