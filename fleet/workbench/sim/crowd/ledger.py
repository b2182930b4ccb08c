"""What the devices of a crowd were told: every call, so that one that came twice is seen."""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from fleet.workbench.sim.crowd.shares import Fate


@dataclass(frozen=True, slots=True)
class Told:
    """A call that a device was asked to do. `arguments` is JSON."""

    tool: str
    arguments: str
    fate: Fate


@dataclass(slots=True)
class Ledger:
    """Counts of a whole process."""

    calls: dict[str, list[Told]] = field(default_factory=dict)
    """By MAC, in the order in which they came."""
    notices: dict[str, list[str]] = field(default_factory=dict)
    """URLs of notifications that were played, by MAC."""
    alerts: Counter[str] = field(default_factory=Counter)
    """Alerts that were shown, by MAC."""
    counts: Counter[str] = field(default_factory=Counter)
    """Boots, connections, losses, upgrades, and what went wrong."""
    pace: Counter[int] = field(default_factory=Counter)
    """Calls by tenth of a second of the system's monotonic clock, which all processes share."""
    fetches: Counter[int] = field(default_factory=Counter)
    """Notifications likewise, when their file had come."""

    def call(self, mac: str, told: Told) -> None:
        """Note a call."""
        self.calls.setdefault(mac, []).append(told)
        self.pace[_tenth()] += 1

    def fetch(self) -> None:
        """Note that the file of a notification has come."""
        self.fetches[_tenth()] += 1

    def nth(self, mac: str) -> int:
        """Return how many calls a device got so far."""
        return len(self.calls.get(mac, ()))

    def document(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        return {
            "calls": {mac: [[one.tool, one.arguments, one.fate] for one in told] for mac, told in self.calls.items()},
            "notices": self.notices,
            "alerts": dict(self.alerts),
            "counts": dict(self.counts),
            "pace": {str(tenth): count for tenth, count in self.pace.items()},
            "fetches": {str(tenth): count for tenth, count in self.fetches.items()},
        }


def merge(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the documents of several processes, whose devices are different ones, as one."""
    whole: dict[str, Any] = {"calls": {}, "notices": {}, "alerts": {}}
    sums = {name: Counter[str]() for name in ("counts", "pace", "fetches")}
    for one in documents:
        for name in whole:
            whole[name] |= one[name]
        for name, counter in sums.items():
            counter.update(one[name])
    return {**whole, **{name: dict(counter) for name, counter in sums.items()}}


def _tenth() -> int:
    return int(time.monotonic() * 10)
