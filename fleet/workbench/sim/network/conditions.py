"""What lies between one device and the server."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from fleet.workbench.sim.network.faults import Faults
from fleet.workbench.sim.network.impairment import Impairment
from fleet.workbench.sim.network.latency import Latency
from fleet.workbench.sim.profiles.profile import Profile


@dataclass(frozen=True, slots=True)
class NetworkConditions:
    """The faults, the delays, and both directions of UDP."""

    faults: Faults
    chance: random.Random
    latency: Latency | None
    up: Impairment
    down: Impairment

    @classmethod
    def of(cls, profile: Profile, faults: Faults, chance: random.Random) -> "NetworkConditions":
        """Return the network of a profile; it has random numbers of its own, so that the device stays repeatable."""
        dice = random.Random(chance.getrandbits(64))
        latency = Latency(profile.rtt, dice) if profile.rtt else None
        return cls(faults, dice, latency, Impairment(faults, dice, latency), Impairment(faults, dice, latency))

    @property
    def spread(self) -> float:
        """By how many seconds datagrams and messages may be shifted against each other."""
        return self.latency.spread if self.latency else 0.0

    def happens(self, share: float) -> bool:
        return share > 0 and self.chance.random() < share


@dataclass(frozen=True, slots=True)
class DatagramCallbacks:
    """Called for downlink datagrams: as they come from the server, as the device gets them, and for missing ones.

    `arrived` returns False for a datagram that the device's socket could not take.
    """

    arrived: Callable[[bytes], bool]
    received: Callable[[bytes], None]
    missed: Callable[[], None]
