"""`scripts/bench turns`: how many turns a second one worker process answers, and how many two."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fleet.workbench.bench.figures import Percentiles, Spread
from fleet.workbench.bench.stand import PARTS, stand


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured: `seconds` a window, so many windows of each kind."""

    workers: Sequence[int]
    users: int
    """Who say the next thing as soon as they have an answer."""
    calls: int
    """Tool calls of each turn."""
    seconds: float
    repeats: int


@dataclass(frozen=True, slots=True)
class Case:
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


async def measure(plan: Plan, doing: Callable[[str], None]) -> list[Case]:
    """Measure all cases.

    Args:
        plan: What.
        doing: Told what is being measured.

    Raises:
        ConfigError: A program is missing.
        Unavailable: A process of the benchmark ended.
    """
    return [await _case(plan, count, doing) for count in plan.workers]


async def _case(plan: Plan, workers: int, doing: Callable[[str], None]) -> Case:
    what = f"{workers} worker{'s' * (workers > 1)}"
    doing(f"{what}: starting")
    async with stand(workers=workers) as here:
        await here.rest()
        await here.meet(plan.users, plan.users)
        doing(f"{what}: turns")
        # The first window warms up: histories reach their length.
        _, *windows = [
            await here.measure("talk", at_once=plan.users, seconds=plan.seconds, calls=plan.calls)
            for _ in range(plan.repeats + 1)
        ]
        whole = sum(window.seconds for window in windows)
        return Case(
            workers=workers,
            turns=Spread.of([window.count / window.seconds for window in windows]),
            cores={part: sum(window.cpu[part] for window in windows) / whole for part in PARTS},
            us={part: Spread.of([window.us(part) for window in windows]) for part in PARTS},
            ms=Percentiles.of([ms for window in windows for ms in window.ms]),
            lost=sum(window.lost for window in windows),
        )
