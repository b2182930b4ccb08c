"""Random values that all processes of control share."""

import secrets

from sqlalchemy import select

from fleet.adapters.sql.schema import SECRET
from fleet.adapters.sql.transaction import Sql
from fleet.adapters.sql.upserts import insert_if_absent


async def signing_key(sql: Sql, name: str = "cursors") -> bytes:
    """Return a key of 256 bits; the first process that asks makes it.

    Raises:
        Unavailable: The database does not answer.
    """
    found = select(SECRET.c.value).where(SECRET.c.name == name)
    async with sql.reading() as connection:
        value = (await connection.execute(found)).scalar_one_or_none()
    if value is None:
        async with sql.writing() as connection:
            made = insert_if_absent(SECRET, is_sqlite=sql.is_sqlite).values(name=name, value=secrets.token_hex(32))
            await connection.execute(made)
            value = (await connection.execute(found)).scalar_one()
    return bytes.fromhex(value)
