"""The kinds `tool`, `reboot` and `collect`: an operator's call for each device, and where outcomes arrive."""

import re
from collections.abc import Sequence
from typing import Final

from msgspec import structs

from fleet.adapters.redis.shards.job_calls import AT_ONCE, JobCalls, JobOutcome
from fleet.adapters.redis.shards.operator_calls import CallState
from fleet.adapters.sql.job_executions import NEVER, CallEnd, SentCall
from fleet.adapters.sql.job_rows import JobRow
from fleet.adapters.sql.mac_numbers import mac_number, mac_text
from fleet.roles.control.access import milliseconds
from fleet.roles.control.job_policies import policy_of, terms_of_job
from fleet.roles.control.job_tasks.task import JobTask, OutcomeSource
from fleet.wire.operator_calls import AWAKE_LATER, IN_SESSION, LATE, LOST, NO_OUTCOME, OFFLINE, OperatorCall

BUSY_MS = 15_000
"""How long a device is left alone that was busy."""
AWAKE_MS = 600_000
"""How long a device is left alone that waits for its next session; the session ends the wait."""
SHARD_BUSY: Final = "its shard is busy"
_NAME = re.compile(r"job-(\d{1,18})-(\d{1,9})", re.ASCII)


class CallTask(JobTask):
    """Calls a tool on each device.

    Args:
        job: Of a kind whose terms name a tool.
        calls: Hands calls over.
    """

    def __init__(self, job: JobRow, calls: JobCalls) -> None:
        self.terms, self._body = terms_of_job(job), job.body
        self._policy, self._calls, self._tenant = policy_of(job), calls, job.tenant

    def call(self, mac: str, name: str) -> OperatorCall:
        """Return the call of one device."""
        tool, arguments = self.terms.tool, dict(self.terms.arguments)
        return OperatorCall(device=mac, call=name, tool=tool, arguments=arguments, idle=self._policy.idle)

    async def start(self, sent: Sequence[SentCall]) -> Sequence[CallEnd]:
        """Queue the calls; those for which a shard has no room come back."""
        return await self.queue(sent, [self.call(mac_text(one.mac), call_name(one.job, one.attempt)) for one in sent])

    async def queue(self, sent: Sequence[SentCall], calls: Sequence[OperatorCall]) -> list[CallEnd]:
        """Queue a call for each device; see `start`."""
        named = {mac_text(one.mac): one for one in sent}
        owned = [structs.replace(one, tenant=self._tenant) for one in calls]
        full = await self._calls.put(owned, self._policy.within_ms)
        due, back = milliseconds() + 1_000, [named[one.device] for one in full]
        return [CallEnd(one.job, one.mac, one.attempt, "waiting", SHARD_BUSY, due) for one in back]

    async def review(self, sent: Sequence[SentCall], *, overdue: bool) -> Sequence[CallEnd]:
        """Look the calls up."""
        now, ends = milliseconds(), []
        for at in range(0, len(sent), AT_ONCE):
            some = sent[at : at + AT_ONCE]
            states = await self._calls.states([(mac_text(one.mac), call_name(one.job, one.attempt)) for one in some])
            found = zip(some, states, strict=True)
            ends += [_judged(call, state, now) for call, state in found if overdue or state is None]
        return ends


class CallOutcomes(OutcomeSource):
    """The outcomes of calls, as the owners of shards write them."""

    def __init__(self, calls: JobCalls) -> None:
        self._calls = calls
        self._found: Sequence[JobOutcome] = ()

    async def read(self, now: int) -> Sequence[CallEnd]:
        """Return the oldest outcomes of each shard."""
        self._found = await self._calls.outcomes()
        return [end for end in (_ended(one, now) for one in self._found) if end is not None]

    async def forget(self) -> None:
        """Remove them, and the records of their calls."""
        await self._calls.forget(self._found)


def call_name(job: int, attempt: int) -> str:
    """Return the id of a call; its record has the device in its name."""
    return f"job-{job}-{attempt}"


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
        case _ if text == AWAKE_LATER:
            return CallEnd(job, mac, attempt, "waiting", text, now + AWAKE_MS)
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
            return CallEnd(*of, "unknown", NO_OUTCOME)
        case state, text:
            return _end(*of, state, text, now)
