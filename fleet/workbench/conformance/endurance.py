"""Many conversations over a bad network: counts the answered turns, and measures how soon they are answered."""

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
"""Turns of each conversation."""
REBIND_AT = 15
"""The packet before which a device gets a new address, for `Faults.rebind_at`: in the middle of the first utterance,
with a button as without one. After the last packets of an utterance nothing would prove the new address: the microphone
is off until the end of the answer, and the answer goes to the old one."""
_UTTERANCE_SECONDS = 1.2
_TURN_SECONDS = 30.0
_PAUSE_SECONDS = 0.6
"""Between an answer and the next utterance."""
_MOST_FAILURES = 50


class EnduranceReport(BaseModel):
    """The result; times are milliseconds from the end of the utterance to the first sound of the answer."""

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
    """Datagrams of both directions that the simulated network dropped."""
    gaps: int
    """Silences of 10 ms or more inside sentences, also those that the network caused."""
    gaps_ms: int
    """The length of all gaps together."""
    longest_stall_ms: float
    """The longest time for which this process itself did not run: a high value makes the times worthless."""
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
    longest_stall_ms: float = 0.0


async def endure(
    setup: Setup,
    profiles: Sequence[Profile],
    conversations: int,
    faults: Faults,
    at_once: int,
    on_end: Callable[[list[str]], None] = lambda _: None,
) -> EnduranceReport:
    """Hold conversations of three turns each, `at_once` of them at the same time, each with its own device.

    Args:
        setup: The server's addresses, and its scripted models.
        profiles: The devices' profiles; the conversations use them in turn.
        conversations: The number of conversations.
        faults: The faults of the network in each conversation.
        at_once: The number of conversations at the same time.
        on_end: Called after each conversation with its failures; with an empty list if there were none.

    Raises:
        NotApplicable: The server does not use the scripted models.
    """
    contexts = [CheckContext(setup, profile) for profile in profiles]
    _ = contexts[0].steering  # raises NotApplicable before any conversation begins
    tally, slots = _Tally(), asyncio.Semaphore(at_once)

    async def one(number: int) -> None:
        context = contexts[number % len(contexts)]
        async with slots:
            failures = await _converse(context, faults, tally)
        tally.completed += not failures
        described = [f"conversation {number} ({context.profile.name}): {failure}" for failure in failures]
        tally.failures += described
        on_end(described)

    async with asyncio.TaskGroup() as group:
        for number in range(1, conversations + 1):
            group.create_task(one(number), name=f"conversation {number}")
    return _report([profile.name for profile in profiles], conversations, tally)


async def _converse(context: CheckContext, faults: Faults, tally: _Tally) -> list[str]:
    """Hold one conversation; return its failures."""
    # Findings belong to a conversation, so each has a context of its own.
    own = CheckContext(context.setup, context.profile)
    failures: list[str] = []
    try:
        async with own.simulated_device(faults=faults) as device:
            failures = await _talk(own, device, tally)
            if not await device.hang_up():
                failures.append(f"left in state {device.state.value} after hanging up")
            tally.counters.update(device.report.counters)
            tally.longest_stall_ms = max(tally.longest_stall_ms, device.report.held_up_ms)
    except (FleetError, OSError, Failed) as error:
        failures.append(str(error) or type(error).__name__)
    return [*failures, *own.findings]


async def _talk(context: CheckContext, device: SimDevice, tally: _Tally) -> list[str]:
    manual = device.profile.mode == "manual"
    opened = manual or (await device.wake() if device.profile.wake_packets else await device.press())
    if not opened:
        return ["the device does not listen: its hello was not answered"]
    failures = []
    for number in range(1, TURNS + 1):
        if not manual:
            await asyncio.sleep(_PAUSE_SECONDS)
        with context.scene(reply_seconds=REPLY_SECONDS) as scene:
            turn = await device.say(voice.say(scene.mark, _UTTERANCE_SECONDS), _TURN_SECONDS)
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

    def quantile(part: float) -> float | None:
        return latencies[min(len(latencies) - 1, round(part * (len(latencies) - 1)))] if latencies else None

    return EnduranceReport(
        profiles=profiles,
        conversations=conversations,
        completed=tally.completed,
        turns=tally.turns.total(),
        answered=tally.turns["answered"],
        p50=quantile(0.5),
        p99=quantile(0.99),
        slowest=quantile(1.0),
        lost=sum(count for name, count in tally.counters.items() if name.endswith("_lost")),
        gaps=tally.counters["gaps"],
        gaps_ms=tally.counters["gaps_ms"],
        longest_stall_ms=tally.longest_stall_ms,
        outcomes=dict(tally.turns),
        failures=tally.failures[:_MOST_FAILURES],
    )
