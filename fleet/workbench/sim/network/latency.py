"""The delay of a mobile network: it drifts between two limits, with a little jitter on top."""

import random

from fleet.workbench.sim.profiles.timing import Range

_STEP = 2.0
_JITTER = 0.02


class Latency:
    """One direction's delay: half the round trip; MQTT and UDP share it, as they share the radio.

    Args:
        rtt: Least and greatest round trip in seconds.
        chance: Random numbers.
    """

    def __init__(self, rtt: Range, chance: random.Random) -> None:
        self._low, self._high = rtt[0] / 2, max(rtt[0] / 2, rtt[1] / 2 - _JITTER)
        self._chance = chance
        self._from = self._to = chance.uniform(self._low, self._high)
        self._since: float | None = None

    @property
    def spread(self) -> float:
        """By how much two packets' delays may differ, in seconds."""
        return self._high + _JITTER - self._low

    def delay(self, now: float) -> float:
        """Return how many seconds a packet that is sent now travels."""
        if self._since is None or now - self._since >= 2 * _STEP:
            self._since = now
        while now - self._since >= _STEP:
            self._since += _STEP
            self._from, self._to = self._to, self._chance.uniform(self._low, self._high)
        share = (now - self._since) / _STEP
        return self._from + (self._to - self._from) * share + self._chance.uniform(0, _JITTER)
