"""Decides whether a rolling restart lost something: pure functions over the observations."""

from collections.abc import Iterator
from dataclasses import dataclass

from fleet.workbench.cluster.check.history import Fault, History, Turn, during
from fleet.workbench.cluster.check.models import DONE
from fleet.workbench.cluster.cluster import Restart
from fleet.workbench.cluster.options import Role


@dataclass(frozen=True, slots=True)
class RestartFigures:
    """Duration of a replacement, and its effect on the turns at that time."""

    name: str
    role: Role
    ready: float
    drain: float
    turns: int
    """Turns that overlap with the replacement."""
    longest_wait: float
    """Of these turns."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a check; waits are seconds from the end of a question to the begin of its answer."""

    users: int
    turns: int
    answered: int
    lost: int
    repeats: int
    """Questions that were repeated because a goodbye came when they began."""
    calls: int
    """Tool calls that ran."""
    api_requests: int
    median_wait: float
    longest_wait: float
    timing_violations: int
    """Broken timing rules; they do not count as loss."""
    device_lag: float
    """Longest lateness of the process of the devices; a high value invalidates all times."""
    restarts: list[RestartFigures]
    faults: list[Fault]

    @property
    def ok(self) -> bool:
        return not self.faults and self.turns > 0


def judge(history: History) -> Verdict:
    """Return the verdict on the observations."""
    turns = history.turns
    waits = sorted(turn.wait for turn in turns if turn.wait is not None)
    answered = sum(turn.outcome == "answered" for turn in turns)
    return Verdict(
        users=len(history.users),
        turns=len(turns),
        answered=answered,
        lost=len(turns) - answered,
        repeats=sum(turn.repeats for turn in turns),
        calls=sum(turn.calls for turn in turns),
        api_requests=history.api_requests,
        median_wait=waits[len(waits) // 2] if waits else 0.0,
        longest_wait=max(waits, default=0.0),
        timing_violations=history.timing_violations,
        device_lag=history.device_lag,
        restarts=[_measure(history, restart) for restart in history.restarts],
        faults=[*history.faults, *_faults(history)],
    )


def _measure(history: History, restart: Restart) -> RestartFigures:
    turns = during(history.turns, restart)
    longest = max((turn.wait for turn in turns if turn.wait is not None), default=0.0)
    return RestartFigures(restart.name, restart.role, restart.ready, restart.drain, len(turns), longest)


def _faults(history: History) -> Iterator[Fault]:
    for turn in history.turns:
        yield from _check_turn(turn)
    for restart in history.restarts:
        yield from _check_restart(restart)
    for who in history.users:
        turns = list(history.of(who))
        if not any(turn.begun >= history.over and turn.outcome == "answered" for turn in turns):
            yield Fault("no turn after the restart", f"{who} had no answered turn after the last restart")
        if turns and turns[0].kind == "client":
            yield from _check_memory(turns)


def _check_turn(turn: Turn) -> Iterator[Fault]:
    where = f"turn {turn.number} of {turn.who}"
    if turn.calls > 1:
        yield Fault("tool ran twice", f"{where}: {turn.calls} times")
    if turn.outcome != "answered":
        yield Fault("turn lost", f"{where}: {'; '.join(turn.notes) or 'no answer'}")
    elif turn.calls != 1 or DONE not in turn.answer:
        yield Fault("tool did not run", f"{where}: ran {turn.calls} times, the answer is {turn.answer!r}")
    elif str(turn.mark) not in turn.answer:
        yield Fault("answer of another turn", f"{where}: {turn.answer!r} in place of scene {turn.mark}")


def _check_restart(restart: Restart) -> Iterator[Fault]:
    if restart.code != 0:
        yield Fault("unclean exit", f"{restart.name}: exit code {restart.code}")
    if restart.dropped_work:
        yield Fault("unclean exit", f"{restart.name} dropped work that it should have handed over")


def _check_memory(turns: list[Turn]) -> Iterator[Fault]:
    """Check that a client's session continues in the next process: only its first answer may remember nothing."""
    for turn in turns[1:]:
        if turn.outcome == "answered" and "remembers 0 questions" in turn.answer:
            yield Fault("session lost", f"turn {turn.number} of {turn.who}: {turn.answer!r}")
