"""`scripts/bench turns`: how many turns a second one worker process answers, and how many two."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fleet.workbench.bench.experiment import Experiment, Progress
from fleet.workbench.bench.figures import Percentiles, Spread
from fleet.workbench.bench.testbed import PARTS, Cost, testbed


@dataclass(frozen=True, slots=True)
class TurnsResult:
    """All that was measured with so many worker processes."""

    workers: int
    turns: Spread
    """A second."""
    cores: dict[str, float]
    """That each part kept busy."""
    us: dict[str, Spread]
    """CPU time of a turn by part, in microseconds."""
    ms: Percentiles
    lost: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsExperiment(Experiment[list[TurnsResult]]):
    """Users who speak again as soon as they have an answer, with several numbers of worker processes."""

    name: ClassVar[str] = "turns"

    workers: Sequence[int]
    users: int
    calls: int
    """Tool calls of each turn."""

    async def measure(self, progress: Progress) -> list[TurnsResult]:
        return [await self._with(count, progress) for count in self.workers]

    async def _with(self, workers: int, progress: Progress) -> TurnsResult:
        what = f"{workers} worker{'s' * (workers > 1)}"
        progress(f"{what}: starting")
        async with testbed(workers=workers) as site:
            await site.rest()
            await site.meet(self.users, self.users)
            progress(f"{what}: turns")
            # The first window warms up: histories reach their length.
            _, *windows = [
                await site.measure("talk", at_once=self.users, seconds=self.seconds, calls=self.calls)
                for _ in range(self.repeats + 1)
            ]
        whole = sum(window.seconds for window in windows)
        cost = Cost.of(windows)
        return TurnsResult(
            workers=workers,
            turns=Spread.of([window.count / window.seconds for window in windows]),
            cores={part: sum(window.cpu[part] for window in windows) / whole for part in PARTS},
            us=cost.us,
            ms=cost.ms,
            lost=cost.lost,
        )
