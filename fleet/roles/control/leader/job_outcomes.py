"""Stores what became of the calls that jobs handed over."""

import re
from collections.abc import Iterable, Mapping, Sequence

from fleet.adapters.redis.shards.job_calls import JobCalls, JobOutcome
from fleet.adapters.redis.shards.operator_calls import CallState
from fleet.adapters.sql.job_executions import AT_ONCE, NEVER, CallEnd, EndTerms, JobExecutions, SentCall
from fleet.adapters.sql.job_rows import JobRow
from fleet.adapters.sql.mac_numbers import mac_number, mac_text
from fleet.core.tool_kinds import kind_of
from fleet.ground.metrics import jobs as counted
from fleet.roles.control.job_policies import call_of_job, policy_of
from fleet.wire.operator_calls import IN_SESSION, LATE, OFFLINE

BUSY_MS = 15_000
"""How long a device is left alone that was busy."""
LATE_MS = 60_000
"""How long after its last moment a call is looked up whose outcome did not come."""
LONGEST_ANSWER_MS = 60_000
_NAME = re.compile(r"job-(\d{1,18})-(\d{1,9})", re.ASCII)
LOST = "the server lost what became of it"


def call_name(job: int, attempt: int) -> str:
    """Return the id of a call; its record has the device in its name."""
    return f"job-{job}-{attempt}"


class JobOutcomes:
    """Collects outcomes under one lease."""

    def __init__(self, calls: JobCalls, executions: JobExecutions) -> None:
        self._calls, self._executions = calls, executions

    async def collect(self, jobs: Iterable[JobRow], now: int) -> int:
        """Store the oldest outcomes, then remove them from Redis; return how many there were."""
        found = await self._calls.outcomes()
        ended = [one for one in (_ended(outcome, now) for outcome in found) if one is not None]
        await self._store(ended, jobs, now)
        await self._calls.forget(found)
        return len(found)

    async def look_up(self, job: JobRow, now: int) -> None:
        """End the executions of a job that have had no outcome for so long that none is to be expected."""
        answer = max(LONGEST_ANSWER_MS, round(kind_of(call_of_job(job.kind, job.body).tool).seconds * 1000))
        overdue = await self._executions.sent(job.id, now - policy_of(job).within_ms - answer - LATE_MS)
        states = await self.states(overdue)
        await self._store([_judged(call, state, now) for call, state in zip(overdue, states, strict=True)], [job], now)

    async def give_up_lost(self, job: JobRow, now: int) -> None:
        """End those executions of a job as unknown of which Redis, which lost its data, does not know."""
        calls = await self._executions.sent(job.id)
        states = await self.states(calls)
        lost = [call for call, state in zip(calls, states, strict=True) if state is None]
        await self._store([CallEnd(one.job, one.mac, one.attempt, "unknown", LOST) for one in lost], [job], now)

    async def states(self, calls: Sequence[SentCall]) -> list[tuple[CallState, str] | None]:
        """Return what Redis knows of calls."""
        named = [(mac_text(one.mac), call_name(one.job, one.attempt)) for one in calls]
        return [
            one for at in range(0, len(named), AT_ONCE) for one in await self._calls.states(named[at : at + AT_ONCE])
        ]

    async def _store(self, ended: Sequence[CallEnd], jobs: Iterable[JobRow], now: int) -> None:
        terms = terms_of(jobs) if ended else {}
        for at in range(0, len(ended), AT_ONCE):
            for state, count in (await self._executions.end(ended[at : at + AT_ONCE], terms, now)).items():
                counted.executions.add(state, count=count)


def terms_of(jobs: Iterable[JobRow]) -> Mapping[int, EndTerms]:
    """Return what the ends of calls mean for jobs."""
    return {one.id: EndTerms(policy_of(one), call_of_job(one.kind, one.body).attribute) for one in jobs}


def _ended(outcome: JobOutcome, now: int) -> CallEnd | None:
    named = _NAME.fullmatch(outcome.call)
    if named is None:
        return None
    return _end(int(named[1]), mac_number(outcome.device), int(named[2]), outcome.state, outcome.text, now)


def _end(job: int, mac: int, attempt: int, state: CallState, text: str, now: int) -> CallEnd:
    match state:
        case "ok" | "error" | "unknown":
            return CallEnd(job, mac, attempt, state, text)
        case _ if text == LATE:
            return CallEnd(job, mac, attempt, "timed_out", text)
        case _ if text == OFFLINE:
            return CallEnd(job, mac, attempt, "waiting", text, NEVER)
        case _:
            return CallEnd(job, mac, attempt, "waiting", text, now + (BUSY_MS if text == IN_SESSION else 2 * BUSY_MS))


def _judged(call: SentCall, known: tuple[CallState, str] | None, now: int) -> CallEnd:
    """Return the end of a call whose outcome did not come. One that still waits cannot begin: Redis refuses it."""
    of = call.job, call.mac, call.attempt
    if known is None:
        return CallEnd(*of, "unknown", LOST)
    match known:
        case "queued", _:
            return CallEnd(*of, "timed_out", LATE)
        case "sent", _:
            return CallEnd(*of, "unknown", "its outcome did not come")
        case state, text:
            return _end(*of, state, text, now)
