"""The report of a simulation, ready for JSON."""

from pathlib import Path

from pydantic import BaseModel, JsonValue

from fleet.workbench.sim.records.audit import RULES
from fleet.workbench.sim.records.journal import Journal
from fleet.workbench.sim.records.turns import Turn

_DIGITS = 4


class StepReport(BaseModel):
    """`at` in seconds since the simulation began."""

    at: float
    name: str
    detail: dict[str, JsonValue] = {}


class TurnReport(BaseModel):
    """`times` in seconds since the simulation began, `latencies_ms` from the end of the user's speech on."""

    index: int
    spoken: bool
    outcome: str
    cut_off: bool
    transcript: str
    reply: str
    emotions: list[str]
    calls: list[str]
    times: dict[str, float]
    latencies_ms: dict[str, float]
    reply_seconds: float
    gaps_ms: list[float] = []
    """Each silence inside a sentence of the answer: no packet was there when one was due."""


class ViolationReport(BaseModel):
    """One breach of the contract, with the clause that was broken."""

    at: float
    rule: str
    clause: str
    detail: str


class Report(BaseModel):
    """All results of a simulation."""

    device: str
    profile: str
    ok: bool
    """Every utterance got an answer, and no rule was broken."""
    turns: list[TurnReport]
    violations: list[ViolationReport]
    violation_counts: dict[str, int]
    excused: dict[str, int]
    """Breaches by rule that a simulated fault is to blame for."""
    counters: dict[str, int]
    held_up_ms: float
    """The longest that this process itself came late: high values make latencies worthless."""
    tools: dict[str, JsonValue]
    steps: list[StepReport]

    def write(self, path: Path) -> None:
        path.write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")


def build(
    device: str, profile: str, journal: Journal, turns: list[Turn], tools: dict[str, JsonValue], held_up: float
) -> Report:
    """Put a report together; `held_up` in seconds."""
    spoken = [turn for turn in turns if turn.spoken]
    answered = bool(spoken) and all(turn.outcome == "answered" for turn in spoken)
    steps = sorted(journal.steps, key=lambda step: step.at)
    return Report(
        device=device,
        profile=profile,
        ok=answered and not journal.audit.counts,
        turns=[_turn(journal, turn) for turn in turns],
        violations=[
            ViolationReport(at=round(one.at, _DIGITS), rule=one.rule, clause=RULES[one.rule].clause, detail=one.detail)
            for one in journal.audit.violations
        ],
        violation_counts=dict(journal.audit.counts),
        excused=dict(journal.audit.excused),
        counters=dict(sorted(journal.counters.items())),
        held_up_ms=round(held_up * 1000, 1),
        tools=tools,
        steps=[StepReport(at=round(step.at, _DIGITS), name=step.name, detail=step.detail) for step in steps],
    )


def _turn(journal: Journal, turn: Turn) -> TurnReport:
    heard = turn.heard()
    return TurnReport(
        index=turn.index,
        spoken=turn.spoken,
        outcome=turn.outcome,
        cut_off=turn.cut_off,
        transcript=turn.transcript,
        reply=turn.reply,
        emotions=turn.emotions,
        calls=turn.calls,
        times={name: round(journal.since_start(at), _DIGITS) for name, at in turn.times.items()},
        latencies_ms=turn.latencies,
        reply_seconds=round(len(heard) / 2 / turn.sample_rate, 3),
        gaps_ms=[round(seconds * 1000, 1) for seconds in turn.gaps],
    )
