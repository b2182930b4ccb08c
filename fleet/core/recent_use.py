"""Who has used a shared thing lately, and how much."""

import math
from collections import OrderedDict

MEAN_SECONDS = 10.0
"""After this time a third of what somebody used still counts. Who speaks every few seconds has used little then."""
MOST_KEYS = 4096


class RecentUse:
    """Sums what each key has used; older use counts less and less.

    Of too many keys, the one that used something longest ago is forgotten.
    """

    def __init__(self) -> None:
        self._used: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Amount and its time."""

    def amount(self, key: str, now: float) -> float:
        """Return how much of what a key used counts now."""
        amount, at = self._used.get(key, (0.0, now))
        return amount * math.exp((at - now) / MEAN_SECONDS)

    def add(self, key: str, amount: float, now: float) -> None:
        """Add what a key has used."""
        self._used[key] = self.amount(key, now) + amount, now
        self._used.move_to_end(key)
        if len(self._used) > MOST_KEYS:
            self._used.popitem(last=False)
