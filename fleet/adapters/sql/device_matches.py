"""Looks which of some devices meet conditions."""

from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, case, select

from fleet.adapters.sql.database import Database
from fleet.adapters.sql.device_conditions import Conditions
from fleet.adapters.sql.schema import DEVICE
from fleet.core.query.conditions import Condition

_AT_ONCE = 50
"""Conditions of one statement."""
_MOST_CLAUSES = 200
_SECONDS = 2.0
"""Limit of one question: all tenants wait for it."""


class DeviceMatches:
    """Checks few devices, where `DeviceSearch` finds them among many.

    Args:
        database: The registry.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._clauses: dict[tuple[int, Condition], ColumnElement[bool]] = {}

    async def matching(self, tenant: int, conditions: Sequence[Condition], macs: Collection[int]) -> list[set[int]]:
        """Return for each condition those of some devices of a tenant that meet it.

        Raises:
            SlowQuery: It took too long.
            Unavailable: The database does not answer.
        """
        met: list[set[int]] = []
        async with self._database.reading(_SECONDS) as connection:
            for first in range(0, len(conditions), _AT_ONCE):
                clauses = [self._clause(tenant, one) for one in conditions[first : first + _AT_ONCE]]
                columns = [case((clause, 1), else_=0).label(f"c{number}") for number, clause in enumerate(clauses)]
                found = select(DEVICE.c.mac, *columns).where(DEVICE.c.tenant == tenant, DEVICE.c.mac.in_(list(macs)))
                some: list[set[int]] = [set() for _ in clauses]
                for mac, *answers in await connection.execute(found):
                    for number, answer in enumerate(answers):
                        if answer:
                            some[number].add(mac)
                met += some
        return met

    def _clause(self, tenant: int, condition: Condition) -> ColumnElement[bool]:
        key = (tenant, condition)
        clause = self._clauses.get(key)
        if clause is None:
            if len(self._clauses) >= _MOST_CLAUSES:
                self._clauses.clear()
            clause = self._clauses[key] = Conditions(tenant, self._database.is_sqlite).clause(condition)
        return clause
