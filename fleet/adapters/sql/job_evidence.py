"""Reads what events show of executions that are under way, and which executions waited for them in vain."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, select

from fleet.adapters.sql.database import Database
from fleet.adapters.sql.event_rows import StoredEvent
from fleet.adapters.sql.history_schema import COLLECTOR, EVENT
from fleet.adapters.sql.job_executions import AT_ONCE
from fleet.adapters.sql.job_rows import JobRow
from fleet.adapters.sql.job_schema import JOB_EXECUTION
from fleet.wire.job_states import EXECUTION_STATES, UNDER_WAY, ExecutionState

_VERIFYING: Final = EXECUTION_STATES.index("verifying")
_X = JOB_EXECUTION.c
_COLUMNS = (_X.job, _X.mac, _X.attempt, _X.state, _X.place, _X.text)


@dataclass(frozen=True, slots=True)
class Watched:
    """An execution under way. `text` is what was noted of it; `place` its deadline if it is `verifying`."""

    job: int
    mac: int
    attempt: int
    state: ExecutionState
    place: int
    text: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """Events of devices whose executions are under way, in their order; `read` is the event up to which it reaches."""

    found: Sequence[tuple[Watched, StoredEvent]]
    read: int


class JobEvidence:
    """Reads evidence. All methods raise `Unavailable` without the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def newest(self) -> int:
        """Return the id of the newest event."""
        newest = select(COLLECTOR.c.next)
        return await self._database.look(lambda connection: int(connection.execute(newest).scalar_one()) - 1)

    async def after(self, job: JobRow, event: int, kinds: Collection[str]) -> Evidence:
        """Return some of the events above an id, of some kinds and of devices that are under way in a job."""
        c = EVENT.c
        own = (_X.job == job.id) & (_X.mac == c.mac) & _under_way()
        found = select(*_COLUMNS, *EVENT.columns).select_from(EVENT.join(JOB_EXECUTION, own))
        found = found.where(c.tenant == job.tenant, c.id > event, c.kind.in_(kinds)).order_by(c.id).limit(AT_ONCE)

        def read(connection: Connection) -> Evidence:
            newest = int(connection.execute(select(COLLECTOR.c.next)).scalar_one()) - 1
            rows = list(connection.execute(found.where(c.id <= newest)))
            pairs = [(_watched(row[: len(_COLUMNS)]), StoredEvent(*row[len(_COLUMNS) :])) for row in rows]
            return Evidence(pairs, pairs[-1][1].id if len(pairs) == AT_ONCE else newest)

        return await self._database.look(read)

    async def overdue(self, job: int, now: int) -> list[Watched]:
        """Return some of the executions whose evidence did not come in time."""
        late = select(*_COLUMNS).where(_X.job == job, _X.state == _VERIFYING, _X.place <= now).limit(AT_ONCE)
        return await self._database.look(lambda connection: [_watched(row) for row in connection.execute(late)])

    async def under_way(self, job: int) -> list[Watched]:
        """Return the executions of a job that are under way; a window of them."""
        found = select(*_COLUMNS).where(_X.job == job, _under_way())
        return await self._database.look(lambda connection: [_watched(row) for row in connection.execute(found)])


def _under_way() -> ColumnElement[bool]:
    return _X.state.in_([EXECUTION_STATES.index(state) for state in UNDER_WAY])


def _watched(row: Sequence[Any]) -> Watched:
    job, mac, attempt, state, place, text = row
    return Watched(job, mac, attempt, EXECUTION_STATES[state], place, text)
