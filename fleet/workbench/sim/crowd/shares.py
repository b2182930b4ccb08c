"""How many devices of a crowd are what, and how many of their calls end how: drawn, and the same at every run."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Literal

from fleet.ground.errors import ConfigError

Fate = Literal["ok", "error", "silent", "late"]
"""What becomes of a call: `silent` is never answered, `late` after `LATE_SECONDS`."""
LATE_SECONDS = 45.0
"""Longer than the server waits for any tool that ends at once."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Parts of 1."""

    offline: float = 0.0
    """Devices that booted once and do not connect."""
    newer: float = 0.0
    """Devices with firmware 2.5, which play notifications."""
    brick: float = 0.0
    """Upgrades that do not boot: the device comes back with what it had."""
    error: float = 0.0
    """Calls of which the device says that they failed."""
    silent: float = 0.0
    """Calls without an answer."""
    late: float = 0.0
    """Calls with an answer that comes when nobody waits for it any more."""

    @classmethod
    def parse(cls, given: Iterable[str]) -> "Shares":
        """Read `name=share` texts.

        Raises:
            ConfigError: There is no such share, or it is no part of 1.
        """
        known = [one.name for one in fields(cls)]
        values: dict[str, float] = {}
        for text in given:
            name, _, value = text.partition("=")
            try:
                values[name] = float(value)
            except ValueError:
                raise ConfigError(f"{text!r} is no share; write such as offline=0.3") from None
            if name not in known or not 0 <= values[name] <= 1:
                raise ConfigError(f"{text!r} is no share from 0 to 1 of {', '.join(known)}")
        return cls(**values)

    def fate(self, seed: int, mac: str, call: int) -> Fate:
        """Return what becomes of a device's call; calls count from 0."""
        drawn = chance(seed, mac, call)
        fates: tuple[tuple[Fate, float], ...] = (("error", self.error), ("silent", self.silent), ("late", self.late))
        for fate, share in fates:
            if drawn < share:
                return fate
            drawn -= share
        return "ok"


def chance(*parts: object) -> float:
    """Return a number from 0 to 1 that follows from the parts."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=6).digest()) / 2**48
