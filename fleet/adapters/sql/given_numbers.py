"""New numbers of objects that people name by them: none is ever given twice, though its object was deleted."""

from typing import Any

from sqlalchemy import Table, func, select

from fleet.adapters.sql.schema import GIVEN_NUMBER
from fleet.adapters.sql.transaction import Sql


def new_number(sql: Sql, table: Table) -> dict[str, Any]:
    """Return the value of `id` for an `INSERT`; none where the database has such numbers itself.

    SQLite gives the highest number of the table and one more. A trigger keeps the highest one that was deleted.

    Args:
        sql: Where the statement runs.
        table: One that has a row in `given_number`.
    """
    if not sql.is_sqlite:
        return {}
    highest = select(func.coalesce(func.max(table.c.id), 0)).scalar_subquery()
    given = select(func.max(GIVEN_NUMBER.c.last, highest) + 1).where(GIVEN_NUMBER.c.name == table.name)
    return {"id": given.scalar_subquery()}
