"""Writes down which devices a job has: slice by slice, so that neither readers nor the one writer of SQLite wait."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Connection, Select, case, func, literal, select, true

from fleet.adapters.sql.database import Database
from fleet.adapters.sql.device_conditions import Conditions
from fleet.adapters.sql.job_schema import JOB_EXECUTION
from fleet.adapters.sql.schema import DEVICE, LISTED_TOOL
from fleet.adapters.sql.text_conditions import Clause
from fleet.adapters.sql.upserts import insert_if_absent
from fleet.core.job_order import BUCKET, PRIME, TIER, JobOrder
from fleet.core.query.conditions import Condition
from fleet.core.user_tools import user_tool
from fleet.ground.errors import SlowQuery
from fleet.wire.job_states import EXECUTION_STATES

QUEUED, SKIPPED = EXECUTION_STATES.index("queued"), EXECUTION_STATES.index("skipped")
SLICE: Final = 10_000
"""Devices of one transaction; with SQLite it takes about a tenth of a second."""
BOUND_SECONDS: Final = 2.0
"""Limit of a count of devices that are perhaps concerned."""
NO_TOOL, REVOKED = "the device has no such tool", "the device is revoked"


@dataclass(frozen=True, slots=True)
class JobTarget:
    """The devices of a job: those of a tenant that a query means. Those of `first` come first, one after the other.

    Devices without the tool are skipped if one is named, and those that meet a condition of `skips`, by the reason.
    """

    tenant: int
    condition: Condition | Clause
    tool: str = ""
    first: Sequence[Condition] = ()
    skips: Mapping[str, Condition | Clause] = field(default_factory=dict)
    revoked: bool = False
    """Whether it has revoked devices, too; else they are skipped."""
    among: Condition | Clause | None = None
    """Devices among which all of these are, if that is quicker to tell."""


@dataclass(frozen=True, slots=True)
class TargetCounts:
    """How many devices there are, are connected, and are skipped, by reason; `ready` are connected and not skipped.

    Without `counted`, that took too long: then `devices` are as many as it can be, and of the others nothing is known.
    """

    devices: int
    online: int
    skipped: Mapping[str, int]
    ready: int
    counted: bool = True

    @property
    def reached(self) -> int:
        """How many are not skipped."""
        return self.devices - sum(self.skipped.values())


class JobTargets:
    """Reads which devices a target has.

    Args:
        database: The registry.
        target: Of the job.
    """

    def __init__(self, database: Database, target: JobTarget) -> None:
        self._database, self._target = database, target
        self._conditions = Conditions(target.tenant, database.is_sqlite)

    async def count(self) -> TargetCounts:
        """Count the devices; all of them are read.

        Raises:
            Unavailable: The database does not answer, or not in time.
        """
        reason = self._reason().label("reason")
        online = func.sum(case((DEVICE.c.online, 1), else_=0))
        counted = self._matching(reason, func.count().label("n"), online.label("up")).group_by(reason)
        rows = await self._database.look(
            lambda connection: list(connection.execute(counted)), tenant=self._target.tenant
        )
        skipped = {row.reason: row.n for row in rows if row.reason}
        ready = sum(row.up for row in rows if not row.reason)
        return TargetCounts(sum(row.n for row in rows), sum(row.up for row in rows), skipped, ready)

    async def count_at_most(self) -> TargetCounts:
        """Count the devices; if that takes too long, return how many these are at most.

        Raises:
            Unavailable: The database does not answer, or not even that in time.
        """
        try:
            return await self.count()
        except SlowQuery:
            # Why a device would be skipped may take long, also which devices are meant; how many there are does not.
            among = self._target.condition if self._target.among is None else self._target.among
            for condition in (self._clause(among), true()):
                with suppress(SlowQuery):
                    return await self._bound(condition)
            raise

    async def count_by(self, value: ColumnElement[str]) -> Mapping[str, int]:
        """Count the devices that are not skipped by a text of their rows.

        Raises:
            Unavailable: The database does not answer, or not in time.
        """
        named = value.label("value")
        counted = self._matching(named, func.count().label("n")).where(self._reason() == "").group_by(named)
        rows = await self._database.look(
            lambda connection: list(connection.execute(counted)), tenant=self._target.tenant
        )
        return {row.value: row.n for row in rows}

    async def _bound(self, condition: Clause) -> TargetCounts:
        online = func.coalesce(func.sum(case((DEVICE.c.online, 1), else_=0)), 0)
        counted = select(func.count().label("n"), online.label("up")).where(
            DEVICE.c.tenant == self._target.tenant, condition
        )
        row = await self._database.look(
            lambda connection: connection.execute(counted).one(), tenant=self._target.tenant, seconds=BOUND_SECONDS
        )
        return TargetCounts(row.n, row.up, {}, 0, counted=False)

    async def connected(self, counts: TargetCounts, most: int) -> list[int]:
        """Return the devices that are connected and not skipped, as numbers; of more than `most` a fair sample of them.

        Raises:
            Unavailable: The database does not answer, or not in time.
        """
        some = self._matching(DEVICE.c.mac).where(DEVICE.c.online.is_(true()), self._reason() == "")
        if counts.ready > most:
            some = some.where(hash_of(DEVICE.c.mac, 0) < PRIME * most // counts.ready)
        return await self._database.look(
            lambda connection: list(connection.execute(some).scalars()), tenant=self._target.tenant
        )

    async def sample(self, most: int) -> list[int]:
        """Return some of the devices that are connected, as numbers."""
        some = self._matching(DEVICE.c.mac).where(DEVICE.c.online.is_(true())).order_by(DEVICE.c.mac).limit(most)
        return await self._database.look(
            lambda connection: list(connection.execute(some).scalars()), tenant=self._target.tenant
        )

    async def end_of_slice(self, after: int) -> int | None:
        """Return the MAC at which the slice after a MAC ends; None if the rest is one slice."""
        macs = select(DEVICE.c.mac).where(DEVICE.c.tenant == self._target.tenant, DEVICE.c.mac > after)
        last = macs.order_by(DEVICE.c.mac).offset(SLICE - 1).limit(1)

        def read(connection: Connection) -> int | None:
            return connection.execute(last).scalar_one_or_none()

        return await self._database.look(read)

    def insertion(self, job: int, after: int, last: int | None) -> Any:
        """Return the statement that adds the devices of a slice that the job does not have yet."""
        reason = self._reason()
        state = case((reason == "", QUEUED), else_=SKIPPED)
        columns = [literal(job, BigInteger), DEVICE.c.mac, state, self._place(job), literal(0), literal(0), reason]
        chosen = self._matching(*columns).where(DEVICE.c.mac > after)
        if last is not None:
            chosen = chosen.where(DEVICE.c.mac <= last)
        names = ["job", "mac", "state", "place", "attempt", "retries", "text"]
        insertion = insert_if_absent(JOB_EXECUTION, is_sqlite=self._database.is_sqlite).from_select(names, chosen)
        return insertion.returning(JOB_EXECUTION.c.state)

    def _matching(self, *columns: ColumnElement[Any]) -> Select[Any]:
        wanted = self._clause(self._target.condition)
        return select(*columns).select_from(DEVICE).where(DEVICE.c.tenant == self._target.tenant, wanted)

    def _reason(self) -> ColumnElement[str]:
        """Return why a device is skipped; empty if it is not."""
        lacking: list[tuple[ColumnElement[bool], Any]] = []
        if (
            self._target.tool and user_tool(self._target.tool) is None
        ):  # Firmware has those for users only, whether it lists them or not.
            lists = select(LISTED_TOOL.c.list).where(LISTED_TOOL.c.tool == self._target.tool)
            lacking = [(DEVICE.c.tool_list.is_not(None) & DEVICE.c.tool_list.not_in(lists), NO_TOOL)]
        lacking += [(self._clause(condition), reason) for reason, condition in self._target.skips.items()]
        revoked = [] if self._target.revoked else [(DEVICE.c.state == "revoked", REVOKED)]
        cases = [*revoked, *lacking]
        return case(*cases, else_="") if cases else literal("")

    def _clause(self, condition: Condition | Clause) -> Clause:
        return condition if isinstance(condition, ColumnElement) else self._conditions.clause(condition)

    def _place(self, job: int) -> ColumnElement[int]:
        """Return what is stored of `JobOrder.place`."""
        tiers = [(self._conditions.clause(one), _big(number * TIER)) for number, one in enumerate(self._target.first)]
        tier: Any = case(*tiers, else_=_big(len(tiers) * TIER)) if tiers else _big(0)
        exact = hash_of(DEVICE.c.mac, job)
        stored: ColumnElement[int] = tier + exact - exact % BUCKET
        return stored


def hash_of(mac: ColumnElement[int], job: int) -> ColumnElement[int]:
    """Return a device's place in its tier, as `JobOrder.place` computes it."""
    order = JobOrder.of(job)
    mixed = (mac % PRIME * order.factor + order.shift) % PRIME
    return mixed * mixed % PRIME


def _big(number: int) -> ColumnElement[int]:
    return literal(number, BigInteger)
