"""Writes what became of many executions of a job, with few statements: most of them end in the same way."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from sqlalchemy import bindparam, update
from sqlalchemy.ext.asyncio import AsyncConnection

from fleet.adapters.sql.job_schema import JOB_EXECUTION

FEW: Final = 8
"""Executions that change alike and are written row by row: each statement costs as much as some rows."""
_X = JOB_EXECUTION.c


class ExecutionChange(NamedTuple):
    """What changes of an execution: its state and place (see the schema), its text, and its counters."""

    state: int
    place: int
    text: str = ""
    handed: int = 0
    """Hand-overs more."""
    retried: int = 0
    """Retries more."""


async def write_changes(connection: AsyncConnection, job: int, changes: Mapping[int, ExecutionChange]) -> None:
    """Write the changes of a job's executions, by MAC, in a transaction."""
    alike: dict[ExecutionChange, list[int]] = {}
    for mac, one in changes.items():
        alike.setdefault(one, []).append(mac)
    rows = []
    for one, macs in alike.items():
        values = dict(zip(("s", "p", "t", "h", "r"), one, strict=True))
        if len(macs) > FEW:
            await connection.execute(_MANY, {"j": job, "macs": macs, **values})
        else:
            rows += [{"j": job, "m": mac, **values} for mac in macs]
    if rows:
        await connection.execute(_EACH, rows)


_CHANGED = (
    update(JOB_EXECUTION)
    .where(_X.job == bindparam("j"))
    .values(
        state=bindparam("s"),
        place=bindparam("p"),
        text=bindparam("t"),
        attempt=_X.attempt + bindparam("h", type_=_X.attempt.type),
        retries=_X.retries + bindparam("r", type_=_X.retries.type),
    )
)
_MANY = _CHANGED.where(_X.mac.in_(bindparam("macs", expanding=True)))
_EACH = _CHANGED.where(_X.mac == bindparam("m"))
