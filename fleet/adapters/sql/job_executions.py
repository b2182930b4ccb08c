"""Moves the executions of jobs from state to state, only forward, with the jobs' counters in the same transaction."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, and_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from fleet.adapters.sql.device_answers import set_attributes
from fleet.adapters.sql.job_changes import ExecutionChange, write_changes
from fleet.adapters.sql.job_feed import JobFeed, place_of
from fleet.adapters.sql.job_rows import JobRow
from fleet.adapters.sql.job_schema import JOB, JOB_EXECUTION
from fleet.adapters.sql.schema import DEVICE
from fleet.core.rollout import Policy, Recent, retry_pause
from fleet.wire.job_states import EXECUTION_STATES, FAILURES, OPEN_STATES, ExecutionState
from fleet.wire.operator_calls import AWAKE_LATER

NEVER: Final = 2**62
"""The time of a device that waits for something which has no time, such as its connection."""
LONGEST_TEXT: Final = 1000
"""Characters of a text that is kept."""
AT_ONCE: Final = 500
"""Executions of one transaction, but for those that are cancelled."""
_CLOSED_AT_ONCE: Final = 5_000
_GONE: Final = "the registry has the device no more"
_NUMBER: Final = {state: number for number, state in enumerate(EXECUTION_STATES)}
_QUEUED, _WAITING, _SENT, _VERIFYING = (_NUMBER[state] for state in ("queued", "waiting", "sent", "verifying"))
_X = JOB_EXECUTION.c


@dataclass(frozen=True, slots=True)
class NextDevice:
    """A device that may be handed over. `there`: the job's tenant still has it."""

    mac: int
    there: bool


@dataclass(frozen=True, slots=True)
class NextDevices:
    """Devices of the reached stages, each list bounded."""

    fresh: Sequence[NextDevice]
    due: Sequence[NextDevice]


@dataclass(frozen=True, slots=True)
class SentCall:
    """A call that was handed over. `since` is the time of that."""

    job: int
    mac: int
    attempt: int
    since: int


@dataclass(frozen=True, slots=True)
class CallEnd:
    """How a hand-over ended. `waiting` until `due` means: not now; it was certainly not sent.

    `verifying` until `due` means: the device was told, and evidence is to come.
    """

    job: int
    mac: int
    attempt: int
    state: ExecutionState
    text: str = ""
    due: int = NEVER


@dataclass(frozen=True, slots=True)
class EndTerms:
    """What the end of a call means for its job: the policy, and the attribute of the device that an answer becomes."""

    policy: Policy
    attribute: str = ""


class JobExecutions:
    """Reads and moves executions under one lease; see `JobFeed` for what it raises."""

    def __init__(self, feed: JobFeed) -> None:
        self._feed, self._database = feed, feed.database

    async def candidates(self, job: JobRow, now: int, most: int) -> NextDevices:
        """Return the next devices in the order of a job, and those whose time has come."""
        columns = [_X.mac, DEVICE.c.mac.is_not(None)]
        own = and_(DEVICE.c.mac == _X.mac, DEVICE.c.tenant == job.tenant)
        found = select(*columns).select_from(JOB_EXECUTION.outerjoin(DEVICE, own)).where(_X.job == job.id)
        found = found.order_by(_X.place, _X.mac).limit(most)

        def read(connection: Connection) -> NextDevices:
            reached = _X.place <= job.reach, place_of(job.id) <= job.reach
            fresh = connection.execute(found.where(_X.state == _QUEUED, *reached))
            due = connection.execute(found.where(_X.state == _WAITING, _X.place <= now))
            return NextDevices([NextDevice(*row) for row in fresh], [NextDevice(*row) for row in due])

        return await self._database.look(read)

    async def sent(self, job: int, before: int = NEVER) -> list[SentCall]:
        """Return the calls of a job that were handed over before a time and have no outcome yet; a window of them."""
        found = select(_X.job, _X.mac, _X.attempt, _X.place)
        found = found.where(_X.job == job, _X.state == _SENT, _X.place < before)
        rows = await self._database.look(lambda connection: list(connection.execute(found)))
        return [SentCall(*row) for row in rows]

    async def hand_over(
        self, job: JobRow, now: int, macs: Collection[int], held: Mapping[int, tuple[int, str]], gone: Collection[int]
    ) -> list[SentCall]:
        """Note which devices are handed over now, before that happens; return their calls.

        Args:
            job: The job; if it does not run any more, nothing is handed over.
            now: In ms since 1970.
            macs: At most `AT_ONCE`, of the candidates.
            held: NextDevices that wait on, until a time, with the reason.
            gone: NextDevices that the tenant does not have any more.
        """
        of = _X.job == job.id, _X.state.in_((_QUEUED, _WAITING))
        async with self._feed.writing() as connection:
            running = select(JOB.c.id).where(JOB.c.id == job.id, JOB.c.state == "running").with_for_update()
            if (await connection.execute(running)).first() is None:
                return []
            present = select(_X.mac, _X.state, _X.attempt).where(*of, _X.mac.in_([*macs, *held, *gone]))
            rows = {mac: (state, attempt) for mac, state, attempt in await connection.execute(present)}
            changes = {mac: ExecutionChange(_SENT, now, handed=1) for mac in macs if mac in rows}
            changes |= {mac: ExecutionChange(_WAITING, due, text) for mac, (due, text) in held.items() if mac in rows}
            changes |= {mac: ExecutionChange(_NUMBER["skipped"], now, _GONE) for mac in gone if mac in rows}
            await write_changes(connection, job.id, changes)
            await _count(connection, job.id, Counter((rows[mac][0], one.state) for mac, one in changes.items()))
        return [SentCall(job.id, mac, rows[mac][1] + 1, now) for mac in macs if mac in rows]

    async def end(
        self,
        ended: Sequence[CallEnd],
        terms: Mapping[int, EndTerms],
        now: int,
        witnessed: Mapping[int, int] | None = None,
    ) -> Counter[ExecutionState]:
        """Write outcomes; one that is repeated or outdated changes nothing. Return how many executions got which state.

        Args:
            ended: At most `AT_ONCE`, at most one of each execution.
            terms: By job; the others are left alone.
            now: In ms since 1970.
            witnessed: By job, if they follow from evidence: the event up to which it was read. Of executions that are
                `verifying`, a call's outcome counts only if it is an error: others may be repeated.
        """
        proved = witnessed is not None
        jobs: dict[int, dict[int, CallEnd]] = {}
        for one in ended:
            if one.job in terms:
                jobs.setdefault(one.job, {})[one.mac] = one
        counted: Counter[ExecutionState] = Counter()
        async with self._feed.writing() as connection:
            for job, ends in jobs.items():
                counted += await self._end(connection, job, ends, terms[job], now, proved=proved)
            for job, event in (witnessed or {}).items():
                await connection.execute(update(JOB).where(JOB.c.id == job).values(witnessed=event))
        return counted

    async def _end(
        self,
        connection: AsyncConnection,
        job: int,
        ends: Mapping[int, CallEnd],
        terms: EndTerms,
        now: int,
        *,
        proved: bool,
    ) -> Counter[ExecutionState]:
        of_job = select(JOB.c.tenant, JOB.c.recent_ended, JOB.c.recent_failed).where(JOB.c.id == job)
        row = (await connection.execute(of_job.with_for_update())).one_or_none()
        present = select(_X.mac, _X.state, _X.attempt, _X.retries)
        present = present.where(_X.job == job, _X.state.in_((_SENT, _VERIFYING)), _X.mac.in_(list(ends)))
        found = [one for one in await connection.execute(present) if ends[one.mac].attempt == one.attempt]
        rows = [one for one in found if proved or one.state == _SENT or ends[one.mac].state == "error"]
        if row is None or not rows:
            return Counter()
        changes, outcomes, failures, moves = {}, Counter[ExecutionState](), 0, Counter[tuple[int, int]]()
        for mac, source, _, retries in rows:
            one = ends[mac]
            state, place, text = one.state, one.due if one.state in OPEN_STATES else now, one.text
            failures += state in FAILURES
            pause = retry_pause(terms.policy, state, retries)
            if pause is not None:
                state, place, text = "waiting", now + pause, f"tried again after: {text}"
            number = _NUMBER[state]
            kept = text.replace("\0", "")[:LONGEST_TEXT]
            changes[mac] = ExecutionChange(number, place, kept, retried=int(pause is not None))
            outcomes[state] += 1
            moves[source, number] += 1
        await write_changes(connection, job, changes)
        answers = {mac: ends[mac].text for mac, one in changes.items() if one.state == _NUMBER["ok"]}
        if terms.attribute and answers:
            await set_attributes(connection, row.tenant, terms.attribute, answers)
        ok = outcomes.get("ok", 0)
        recent = Recent(row.recent_ended, row.recent_failed).add(ok + failures, failures)
        judged = {
            "stage_ok": JOB.c.stage_ok + ok,
            "stage_failed": JOB.c.stage_failed + sum(outcomes.get(state, 0) for state in FAILURES),
            **{"recent_ended": recent.ended, "recent_failed": recent.failed},
        }
        await _count(connection, job, moves, judged)
        return outcomes

    async def wake(self, jobs: Sequence[int], due: Mapping[int, int], *, session: bool = False) -> None:
        """Give a time to devices that wait for their connection or a session, by MAC. Each time costs a statement."""
        held = _X.text == AWAKE_LATER if session else _X.place == NEVER
        times: dict[int, list[int]] = {}
        for mac, place in due.items():
            times.setdefault(place, []).append(mac)
        async with self._feed.writing() as connection:
            for place, macs in times.items():
                waits = _X.job.in_(jobs), _X.mac.in_(macs), _X.state == _WAITING, held
                await connection.execute(update(JOB_EXECUTION).where(*waits).values(place=place))

    async def connected(self, job: JobRow, after: int, most: int) -> tuple[list[int], int | None]:
        """Return the devices that wait for their connection though the registry has them as connected, page by page.

        The second value is where the next page begins; None at the end.
        """
        page = select(_X.mac).where(_X.job == job.id, _X.state == _WAITING, _X.place == NEVER, _X.mac > after)
        page = page.order_by(_X.mac).limit(most)

        def read(connection: Connection) -> tuple[list[int], int | None]:
            macs = list(connection.execute(page).scalars())
            online = select(DEVICE.c.mac).where(DEVICE.c.mac.in_(macs), DEVICE.c.online.is_(True))
            return list(connection.execute(online).scalars()), macs[-1] if len(macs) == most else None

        return await self._database.look(read)

    async def close(self, job: JobRow, state: ExecutionState, now: int) -> int:
        """Give a final state to some devices that were not handed over; return how many, 0 if there are none."""
        done = 0
        async with self._feed.writing() as connection:
            for source in (_QUEUED, _WAITING):
                some = (
                    select(_X.mac).where(_X.job == job.id, _X.state == source).order_by(_X.place).limit(_CLOSED_AT_ONCE)
                )
                done += await _move(connection, job.id, some, source, _NUMBER[state], now)
        return done

    async def retry(self, job: JobRow, now: int) -> bool:
        """Let some executions wait that are to be tried again; return whether there may be more."""
        more = False
        async with self._feed.writing() as connection:
            for number, state in enumerate(EXECUTION_STATES):
                if job.retry_states & 1 << number and state in FAILURES:
                    ended = _X.job == job.id, _X.state == number, _X.place <= job.retry_until
                    some = select(_X.mac).where(*ended).order_by(_X.place).limit(_CLOSED_AT_ONCE)
                    more |= await _move(connection, job.id, some, number, _WAITING, now) == _CLOSED_AT_ONCE
            if not more:
                await connection.execute(update(JOB).where(JOB.c.id == job.id).values(retry_states=0))
        return more


async def _move(connection: AsyncConnection, job: int, some: Any, source: int, target: int, place: int) -> int:
    macs = list((await connection.execute(some)).scalars())
    for at in range(0, len(macs), AT_ONCE):
        part = _X.job == job, _X.state == source, _X.mac.in_(macs[at : at + AT_ONCE])
        await connection.execute(update(JOB_EXECUTION).where(*part).values(state=target, place=place))
    await _count(connection, job, Counter({(source, target): len(macs)}))
    return len(macs)


async def _count(
    connection: AsyncConnection, job: int, moves: Mapping[tuple[int, int], int], more: Mapping[str, Any] | None = None
) -> None:
    """Change a job's counters for executions that moved from one state to another, and some more of its columns."""
    changes: Counter[str] = Counter()
    for (source, target), count in moves.items():
        changes[f"n_{EXECUTION_STATES[source]}"] -= count
        changes[f"n_{EXECUTION_STATES[target]}"] += count
    values = {name: JOB.c[name] + change for name, change in changes.items() if change} | dict(more or {})
    if values:
        await connection.execute(update(JOB).where(JOB.c.id == job).values(values))
