"""Running checks against one server, several at a time."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fleet.ground.errors import FleetError
from fleet.ground.tasks import isolate
from fleet.workbench.conformance.catalogue import Check
from fleet.workbench.conformance.context import CheckContext, Setup
from fleet.workbench.conformance.results import Outcome, Result
from fleet.workbench.conformance.verdict import Failed, NotApplicable
from fleet.workbench.sim.network.https import trusting
from fleet.workbench.sim.profiles.profile import Profile
from fleet.workbench.sim.records import clock

Verdict = tuple[Outcome, str]

MOST_AT_ONCE = 8
"""Checks that run side by side: each is a device or a few in real time."""

_TOLD = (Failed, NotApplicable, FleetError, OSError, TimeoutError)
"""What a check may end with besides a sentence."""
_MOST_TOLD = 5


@dataclass(frozen=True, slots=True)
class Task:
    """One check on one profile."""

    check: Check
    profile: Profile
    round: int = 1


@dataclass(frozen=True, slots=True)
class Observer:
    """Called about the progress of the run."""

    begun: Callable[[Task], None]
    ended: Callable[[Result], None]


def plan(checks: Iterable[Check], profiles: Sequence[Profile], rounds: int = 1) -> list[Task]:
    """Return what is to run: every check on each profile that it applies to, the longest first."""
    ordered = sorted(checks, key=lambda check: -check.seconds)
    tasks = [
        Task(check, profile, number)
        for number in range(1, rounds + 1)
        for check in ordered
        for profile in profiles
        if check.applies(profile.name)
    ]
    return sorted(tasks, key=lambda task: not task.check.alone)


async def run_all(tasks: Sequence[Task], setup: Setup, observer: Observer, at_once: int = MOST_AT_ONCE) -> list[Result]:
    """Run all tasks and return their results in the order of the tasks."""
    results: dict[Task, Result] = {}
    slots = asyncio.Semaphore(at_once)

    async def one(task: Task) -> None:
        async with slots:
            observer.begun(task)
            results[task] = await run_one(task, setup)
            observer.ended(results[task])

    # Checks with many devices come first: some brokers slow down with every device that they have ever seen.
    for task in tasks:
        if task.check.alone:
            await one(task)
    async with asyncio.TaskGroup() as group:
        for task in tasks:
            if not task.check.alone:
                group.create_task(one(task), name=f"{task.check.id} {task.profile.name}")
    return [results[task] for task in tasks]


async def run_one(task: Task, setup: Setup) -> Result:
    """Run one check within its limit."""
    begun = clock.now()
    outcome, seen = await _judge(task, setup)
    return Result(
        id=task.check.id,
        title=task.check.title,
        profile=task.profile.name,
        round=task.round,
        outcome=outcome,
        # A lone surrogate, which JSON may carry, can be neither printed nor written.
        seen=seen.encode(errors="replace").decode(),
        seconds=round(clock.now() - begun, 3),
    )


async def _judge(task: Task, setup: Setup) -> Verdict:
    check, context = task.check, CheckContext(setup, task.profile)
    if check.steered and setup.steering is None:
        return "skipped", "needs the scripted models"
    # One check that breaks must not take the others with it.
    verdicts: list[Verdict] = []
    await isolate(f"check {check.id} {task.profile.name}", _run(check, context, verdicts))
    return verdicts[0] if verdicts else ("failed", "the check itself broke; the log says how")


async def _run(check: Check, context: CheckContext, verdicts: list[Verdict]) -> None:
    limit = asyncio.timeout(check.seconds)
    try:
        async with limit:
            with trusting(context.setup.tls):
                seen = await check.run(context)
    except (*_TOLD, ExceptionGroup) as error:
        told = _told(error)
        if told is None:
            raise
        late = isinstance(told, TimeoutError) and limit.expired()
        text = f"not done within {check.seconds:g} s" if late else str(told) or type(told).__name__
        skipped = isinstance(told, NotApplicable)
        verdicts.append(("skipped", text) if skipped else ("failed", _with_findings(text, context)))
        return
    verdicts.append(("failed" if context.findings else "passed", _with_findings(seen, context)))


def _told(error: BaseException) -> BaseException | None:
    """Return what a check ended with, None when it did not end so on purpose; of several at once, the first failure."""
    if isinstance(error, BaseExceptionGroup):
        told = [_told(one) for one in error.exceptions]
        return None if None in told else min(told, key=lambda one: isinstance(one, NotApplicable))
    return error if isinstance(error, _TOLD) else None


def _with_findings(text: str, context: CheckContext) -> str:
    return "; also ".join([text, *dict.fromkeys(context.findings)][:_MOST_TOLD])
