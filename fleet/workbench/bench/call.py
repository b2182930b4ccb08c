"""`scripts/bench call`: what a tool call costs, sending and answer together, with few and with many known devices.

A turn's chat model is a script in the worker's process. The cost of a call is the difference between turns with several
calls and turns with one, so that nothing else of a turn is in it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from fleet.workbench.bench.figures import Percentiles, Spread
from fleet.workbench.bench.stand import PARTS, Cost, Stand, Window, stand

LOW_RATE = 20.0
MANY = 9
"""Calls of a turn with several."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured: `seconds` a window, so many windows of each kind."""

    devices: Sequence[int]
    """Known ones."""
    talking: int
    """Those of them that are connected, and whose users speak one after the other."""
    rate: float
    """Turns a second, in the windows whose CPU time counts."""
    seconds: float
    repeats: int


@dataclass(frozen=True, slots=True)
class Case:
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


async def measure(plan: Plan, doing: Callable[[str], None]) -> list[Case]:
    """Measure all cases.

    Args:
        plan: What.
        doing: Told what is being measured.

    Raises:
        ConfigError: A program is missing.
        Unavailable: A process of the benchmark ended.
    """
    return [await _case(plan, count, doing) for count in plan.devices]


async def _case(plan: Plan, count: int, doing: Callable[[str], None]) -> Case:
    doing(f"{count} devices: starting")
    # A history that grows would cost the turns with many calls more.
    async with stand(settings={"history_messages": 0}) as here:
        connected = min(count, plan.talking)
        doing(f"{count} devices: connecting")
        await here.rest()
        await here.meet(connected, count)
        windows = {calls: await _windows(plan, here, calls, doing) for calls in (0, 1, MANY)}
        doing(f"{count} devices: low load")
        await here.workers[0].ask("watch")
        await here.measure("speak", rate=LOW_RATE, seconds=2 * plan.seconds, calls=1)
        waited = (await here.workers[0].ask("tell"))["waited"]
        return Case(
            devices=count,
            connected=connected,
            turn=Cost.of(windows[0]),
            single=Cost.of(windows[1]),
            many=Cost.of(windows[MANY]),
            call_us={part: slope(windows[1], windows[MANY], part) for part in PARTS},
            low_ms=Percentiles.of([seconds * 1000 for seconds in waited]),
        )


def slope(single: Sequence[Window], many: Sequence[Window], part: str) -> Spread:
    """Return what one more call of a turn costs a part, in microseconds."""
    one = median(window.us(part) for window in single)
    return Spread.of([(window.us(part) - one) / (MANY - 1) for window in many])


async def _windows(plan: Plan, here: Stand, calls: int, doing: Callable[[str], None]) -> list[Window]:
    doing(f"turns with {calls} calls")
    return [await here.measure("speak", rate=plan.rate, seconds=plan.seconds, calls=calls) for _ in range(plan.repeats)]
