"""Many conversations over a bad network: whether every turn is answered, and how soon."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel

from fleet.ground.errors import FleetError
from fleet.workbench.conformance.context import CheckContext, Setup
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.steering.script import mentioned
from fleet.workbench.conformance.talk import REPLY_SECONDS
from fleet.workbench.conformance.verdict import Failed
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.network.faults import Faults
from fleet.workbench.sim.profiles.profile import Profile

TURNS = 3
"""In each conversation."""
REBIND_AT = 50
"""Packet before which a device gets a new address, for `Faults.rebind_at`: in the midst of something that is said."""
_SAID = 1.2
_TURN_SECONDS = 30.0
_BETWEEN = 0.6
_MOST_FAILURES = 50


class EnduranceReport(BaseModel):
    """What came of it; times are milliseconds from the end of the speech to the first sound of the answer."""

    profiles: list[str]
    conversations: int
    completed: int
    """Conversations whose turns were all answered, and that ended with an idle device and without a breach."""
    turns: int
    answered: int
    p50: float | None
    p99: float | None
    slowest: float | None
    lost: int
    """Datagrams of both directions that the simulated network did not deliver."""
    gaps: int
    """Silences of 10 ms or more inside sentences, whoever caused them."""
    gaps_ms: int
    """Their lengths in all."""
    held_up: float
    """The longest that this process itself came late: a high value makes the times worthless."""
    outcomes: dict[str, int]
    failures: list[str]
    """The first fifty, with conversation and turn."""

    @property
    def ok(self) -> bool:
        return self.completed == self.conversations

    def write_json(self, path: Path) -> None:
        path.write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")


@dataclass(slots=True)
class _Tally:
    turns: Counter[str] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    counters: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    completed: int = 0
    held_up: float = 0.0


async def endure(
    setup: Setup,
    profiles: Sequence[Profile],
    conversations: int,
    faults: Faults,
    at_once: int,
    on_end: Callable[[list[str]], None] = lambda _: None,
) -> EnduranceReport:
    """Hold so many conversations of three turns each, some of them side by side, each with a device of its own.

    Args:
        setup: Of the server; it must be steered.
        profiles: Of the devices, in turn.
        conversations: How many.
        faults: What goes wrong in each.
        at_once: How many side by side.
        on_end: Takes what went wrong in a conversation that ended; nothing when it was whole.

    Raises:
        NotApplicable: The server does not use the scripted models.
    """
    stages = [CheckContext(setup, profile) for profile in profiles]
    _ = stages[0].steering
    tally, slots = _Tally(), asyncio.Semaphore(at_once)

    async def one(number: int) -> None:
        context = stages[number % len(stages)]
        async with slots:
            failures = await _converse(context, faults, tally)
        tally.completed += not failures
        told = [f"conversation {number} ({context.profile.name}): {failure}" for failure in failures]
        tally.failures += told
        on_end(told)

    async with asyncio.TaskGroup() as group:
        for number in range(1, conversations + 1):
            group.create_task(one(number), name=f"conversation {number}")
    return _report([profile.name for profile in profiles], conversations, tally)


async def _converse(context: CheckContext, faults: Faults, tally: _Tally) -> list[str]:
    """Hold one conversation; return what went wrong in it."""
    done = CheckContext(context.setup, context.profile)
    failures: list[str] = []
    try:
        async with done.simulated_device(faults=faults) as device:
            failures = await _talk(done, device, tally)
            if not await device.hang_up():
                failures.append(f"left in state {device.state.value} after hanging up")
            tally.counters.update(device.report.counters)
            tally.held_up = max(tally.held_up, device.report.held_up_ms)
    except (FleetError, OSError, Failed) as error:
        failures.append(str(error) or type(error).__name__)
    return [*failures, *done.findings]


async def _talk(context: CheckContext, device: SimDevice, tally: _Tally) -> list[str]:
    manual = device.profile.mode == "manual"
    opened = manual or (await device.wake() if device.profile.wake_packets else await device.press())
    if not opened:
        return ["the device does not listen: its hello was not answered"]
    failures = []
    for number in range(1, TURNS + 1):
        if not manual:
            await asyncio.sleep(_BETWEEN)
        with context.scene(reply_seconds=REPLY_SECONDS) as scene:
            turn = await device.say(voice.say(scene.mark, _SAID), _TURN_SECONDS)
            heard = mentioned(turn.transcript) == scene.mark
            outcome: str = turn.outcome if heard or turn.outcome != "answered" else "misheard"
        tally.turns[outcome] += 1
        if outcome == "answered":
            tally.latencies.append(turn.latencies.get("first_audible", 0.0))
        else:
            failures.append(f"turn {number} {outcome} in state {device.state.value}, heard {turn.transcript!r}")
    return failures


def _report(profiles: list[str], conversations: int, tally: _Tally) -> EnduranceReport:
    latencies = sorted(tally.latencies)

    def share(part: float) -> float | None:
        return latencies[min(len(latencies) - 1, round(part * (len(latencies) - 1)))] if latencies else None

    return EnduranceReport(
        profiles=profiles,
        conversations=conversations,
        completed=tally.completed,
        turns=tally.turns.total(),
        answered=tally.turns["answered"],
        p50=share(0.5),
        p99=share(0.99),
        slowest=share(1.0),
        lost=sum(count for name, count in tally.counters.items() if name.endswith("_lost")),
        gaps=tally.counters["gaps"],
        gaps_ms=tally.counters["gaps_ms"],
        held_up=tally.held_up,
        outcomes=dict(tally.turns),
        failures=tally.failures[:_MOST_FAILURES],
    )
