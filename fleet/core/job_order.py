"""The order in which a job takes its devices: by a hash of job and MAC, so that no choice has to be stored.

The hash is arithmetic that SQL does in the same way (`fleet.adapters.sql.job_targets`). It is quadratic, so that
neighbouring MACs, which are often of one batch and one site, are not taken together.
"""

import hashlib
from dataclasses import dataclass
from typing import Final

PRIME: Final = 2**31 - 1
"""Places of one tier are below it; a product of two numbers below it fits into 63 bits."""
TIER: Final = 2**32
"""From the places of one tier to those of the next: devices that a stage's query means come first."""
BUCKET: Final = 2**23
"""Places are stored in steps of it, 256 for a tier. The order is written MAC by MAC: with exact places every row would
change another page of the index, and a million rows would write gigabytes."""


@dataclass(frozen=True, slots=True)
class JobOrder:
    """The numbers that make the hash of one job."""

    factor: int
    shift: int

    @classmethod
    def of(cls, job: int) -> "JobOrder":
        """Return the order of a job."""
        digest = hashlib.sha256(f"job {job}".encode()).digest()
        return cls(1 + int.from_bytes(digest[:8]) % (PRIME - 1), int.from_bytes(digest[8:16]) % PRIME)

    def place(self, mac: int, tier: int = 0) -> int:
        """Return the place of a device, given its MAC as a number."""
        mixed = (mac % PRIME * self.factor + self.shift) % PRIME
        return tier * TIER + mixed * mixed % PRIME


def stored_place(place: int) -> int:
    """Return what is stored of a place; the rest follows from the MAC again."""
    return place - place % BUCKET


def end_of_tier(tier: int) -> int:
    """Return the last place of a tier."""
    return (tier + 1) * TIER - 1
