"""Gives an agent to many devices at once."""

from collections.abc import Sequence

from sqlalchemy import delete, insert, select

from fleet.adapters.sql.schema import AGENT, ASSIGNMENT, DEVICE
from fleet.adapters.sql.transaction import Sql


async def give_agent(sql: Sql, tenant: int, macs: Sequence[int], agent: int) -> set[int]:
    """Give an agent to some devices, at most 500; return those that have it now.

    Args:
        sql: The database, or a transaction.
        tenant: Whose agent and devices; others do not exist for it.
        macs: As numbers.
        agent: Its id.

    Raises:
        Unavailable: The database does not answer.
    """
    known = select(AGENT.c.id).where(AGENT.c.id == agent, AGENT.c.tenant == tenant).with_for_update()
    own = select(DEVICE.c.mac).where(DEVICE.c.mac.in_(macs), DEVICE.c.tenant == tenant)
    async with sql.writing() as connection:
        if (await connection.execute(known)).first() is None:
            return set()
        there = list((await connection.execute(own)).scalars())
        of = ASSIGNMENT.c.tenant == tenant, ASSIGNMENT.c.scope == "device", ASSIGNMENT.c.ref.in_(there)
        await connection.execute(delete(ASSIGNMENT).where(*of))
        rows = [{"tenant": tenant, "scope": "device", "ref": mac, "agent": agent, "rank": 0} for mac in there]
        if rows:
            await connection.execute(insert(ASSIGNMENT), rows)
    return set(there)
