"""Whether a hello, a packet and a tool call cost more with more known devices, and with more shards."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fleet.workbench.bench.call import CallExperiment
from fleet.workbench.bench.experiment import Experiment, Progress
from fleet.workbench.bench.figures import Spread
from fleet.workbench.bench.testbed import Cost, testbed
from tests.benchmarks.operations import UPLINK, Found, Plan, at_rate, operations
from tests.benchmarks.peer import merge

HELLOS = 600.0
"""A second."""


@dataclass(frozen=True, slots=True)
class ScaleResult:
    """CPU time with so many known devices and shards; `call_us` is one more tool call of a turn, by part."""

    devices: int
    shards: int
    hello: Cost
    packet: Cost
    call_us: dict[str, Spread]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleExperiment(Experiment[list[ScaleResult]]):
    """Several numbers of known devices with the fewest shards, then several numbers of shards with the fewest devices.

    As many devices are connected as are known in the smallest case.
    """

    name: ClassVar[str] = "scale"

    devices: Sequence[int]
    shards: Sequence[int]
    rate: float = HELLOS
    calls: float = 40.0
    """Turns a second."""

    async def measure(self, progress: Progress) -> list[ScaleResult]:
        few, fewest = min(self.devices), min(self.shards)
        cases = [(count, fewest) for count in self.devices]
        cases += [(few, shards) for shards in self.shards if shards != fewest]
        return [await self._with(known, shards, few, progress) for known, shards in cases]

    async def _with(self, known: int, shards: int, connected: int, progress: Progress) -> ScaleResult:
        plan = Plan(connected=connected, rates=[self.rate], saturated=False, streams=connected, seconds=self.seconds)
        rounds: list[Found] = []
        for _ in range(self.repeats):
            progress(f"{known} devices, {shards} shards: hellos and packets")
            async with testbed(settings={"shards": shards}, edge=True) as site:
                rounds.append(await operations(site, plan, known))
        found = merge("fleet", rounds).operations
        turns = CallExperiment(
            devices=[known],
            connected=connected,
            rate=self.calls,
            shards=shards,
            seconds=self.seconds,
            repeats=self.repeats,
        )
        [calls] = await turns.measure(lambda what: progress(f"{shards} shards, {what}"))
        return ScaleResult(known, shards, found[at_rate(self.rate)], found[UPLINK], calls.call_us)
