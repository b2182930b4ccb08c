"""A number for what decides which agents the devices of a tenant have; it rises with each change of that."""

from typing import Any, cast

from sqlalchemy import CursorResult, select, update

from fleet.adapters.sql.schema import TENANT
from fleet.adapters.sql.transaction import Sql


class RuleVersions:
    """Counts the changes of a tenant's assignments, of its groups and of their members.

    Tags, names and presence, which the query of a group may name, are not among them: they change all the time.

    Args:
        sql: The database, or a transaction.
        tenant: Whose.
    """

    def __init__(self, sql: Sql, tenant: int) -> None:
        self._sql, self._tenant = sql, tenant

    async def read(self) -> int:
        """Return the number.

        Raises:
            Unavailable: The database does not answer.
        """
        async with self._sql.reading() as connection:
            found = select(TENANT.c.rules).where(TENANT.c.id == self._tenant)
            return int((await connection.execute(found)).scalar_one())

    async def advance(self, seen: int) -> bool:
        """Raise the number if it is still this one; return whether it was. Nobody else raises it in a transaction.

        Raises:
            Unavailable: The database does not answer.
        """
        raised = update(TENANT).where(TENANT.c.id == self._tenant, TENANT.c.rules == seen).values(rules=seen + 1)
        async with self._sql.writing() as connection:
            return cast("CursorResult[Any]", await connection.execute(raised)).rowcount > 0
