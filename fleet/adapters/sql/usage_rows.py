"""What devices used on each day."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from fleet.adapters.sql.database import Database
from fleet.adapters.sql.history_schema import COUNTED, USAGE
from fleet.adapters.sql.mac_numbers import mac_number, mac_text
from fleet.adapters.sql.upserts import insert_or_add

UsageKey = tuple[int, int, int, str]
"""Tenant, day, MAC as a number, agent."""
Part = Literal["day", "device", "agent"]
MOST_USAGE_ROWS = 1_000
_COLUMNS: Mapping[Part, ColumnElement[Any]] = {"day": USAGE.c.day, "device": USAGE.c.mac, "agent": USAGE.c.agent}


async def add_usage(
    connection: AsyncConnection, usage: Mapping[UsageKey, Mapping[str, int]], *, is_sqlite: bool
) -> None:
    """Add amounts to what is there, in the caller's transaction."""
    if not usage:
        return
    rows = [
        {"tenant": tenant, "day": day, "mac": mac, "agent": agent, **dict.fromkeys(COUNTED, 0), **sums}
        for (tenant, day, mac, agent), sums in sorted(usage.items())
    ]
    await connection.execute(insert_or_add(USAGE, COUNTED, is_sqlite=is_sqlite), rows)


class UsageRows:
    """Reads the usage of one tenant. All methods raise `Unavailable` while the database does not answer."""

    def __init__(self, database: Database, tenant: int) -> None:
        self._database, self._tenant = database, tenant

    async def sums(
        self, by: Sequence[Part], first: int, last: int, *, mac: str = "", agent: str | None = None
    ) -> list[dict[str, Any]]:
        """Return sums over some days, at most `MOST_USAGE_ROWS`: each with its `day` (since 1970), `device`, `agent`.

        Args:
            by: What has a row of its own.
            first: The first day.
            last: The last day.
            mac: Only of this device.
            agent: Only of this agent.
        """
        columns = [_COLUMNS[part].label(part) for part in by]
        total = [func.coalesce(func.sum(USAGE.c[name]), 0).label(name) for name in COUNTED]
        found = select(*columns, *total).where(USAGE.c.tenant == self._tenant, USAGE.c.day.between(first, last))
        if mac:
            found = found.where(USAGE.c.mac == mac_number(mac))
        if agent is not None:
            found = found.where(USAGE.c.agent == agent)
        if columns:
            found = found.group_by(*columns).order_by(*columns).limit(MOST_USAGE_ROWS)
        async with self._database.reading() as connection:
            rows = [dict(row._mapping) for row in await connection.execute(found)]  # noqa: SLF001 - its public name
        for row in rows:
            row.update({name: int(row[name]) for name in COUNTED})
            if "device" in row:
                row["device"] = mac_text(row["device"])
        return rows
