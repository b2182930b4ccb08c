"""`scripts/bench call`: what a tool call costs, sending and answer together, with few and with many known devices.

A turn's chat model is a script in the worker's process. The cost of a call is the difference between turns with several
calls and turns with one, so that nothing else of a turn is in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import ClassVar

from fleet.workbench.bench.experiment import Experiment, Progress
from fleet.workbench.bench.figures import Percentiles, Spread
from fleet.workbench.bench.testbed import PARTS, Cost, Testbed, Window, testbed

LOW_RATE = 20.0
MANY = 9
"""Calls of a turn with several."""


@dataclass(frozen=True, slots=True)
class CallResult:
    """All that was measured with so many known devices."""

    devices: int
    connected: int
    turn: Cost
    """A turn without a call."""
    single: Cost
    """A turn with one."""
    many: Cost
    """A turn with `MANY`."""
    call_us: dict[str, Spread]
    """Of one call, by part."""
    low_ms: Percentiles
    """At `LOW_RATE` turns a second with one call each: from the model's wish to the outcome in its hands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallExperiment(Experiment[list[CallResult]]):
    """Turns with and without tool calls, with several numbers of known devices."""

    name: ClassVar[str] = "call"

    devices: Sequence[int]
    """Known ones."""
    connected: int
    """The most of them that are connected; their users speak one after the other."""
    rate: float
    """Turns a second, in the windows whose CPU time counts."""
    shards: int = 16

    async def measure(self, progress: Progress) -> list[CallResult]:
        return [await self._with(count, progress) for count in self.devices]

    async def _with(self, count: int, progress: Progress) -> CallResult:
        progress(f"{count} devices: starting")
        # A history that grows would cost the turns with many calls more.
        async with testbed(settings={"history_messages": 0, "shards": self.shards}) as site:
            connected = min(count, self.connected)
            progress(f"{count} devices: connecting")
            await site.rest()
            await site.meet(connected, count)
            windows = {calls: await self._windows(site, calls, progress) for calls in (0, 1, MANY)}
            progress(f"{count} devices: low load")
            await site.workers[0].ask("watch")
            await site.measure("speak", rate=LOW_RATE, seconds=2 * self.seconds, calls=1)
            waited = (await site.workers[0].ask("state"))["waited"]
            return CallResult(
                devices=count,
                connected=connected,
                turn=Cost.of(windows[0]),
                single=Cost.of(windows[1]),
                many=Cost.of(windows[MANY]),
                call_us={part: slope(windows[1], windows[MANY], part) for part in PARTS},
                low_ms=Percentiles.of([seconds * 1000 for seconds in waited]),
            )

    async def _windows(self, site: Testbed, calls: int, progress: Progress) -> list[Window]:
        progress(f"turns with {calls} calls")
        return [
            await site.measure("speak", rate=self.rate, seconds=self.seconds, calls=calls) for _ in range(self.repeats)
        ]


def slope(single: Sequence[Window], many: Sequence[Window], part: str) -> Spread:
    """Return what one more call of a turn costs a part, in microseconds."""
    one = median(window.us(part) for window in single)
    return Spread.of([(window.us(part) - one) / (MANY - 1) for window in many])
