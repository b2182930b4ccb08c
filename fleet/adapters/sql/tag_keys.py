"""The keys of tags that a tenant uses."""

from sqlalchemy import select

from fleet.adapters.sql.schema import DEVICE_TAG
from fleet.adapters.sql.transaction import Sql

MOST_KEYS = 90
"""Keys that are given, the first in alphabetical order."""


class TagKeys:
    """Reads keys of tags.

    Args:
        sql: The database, or a transaction.
    """

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    async def of(self, tenant: int) -> list[str]:
        """Return the keys in order. Each is found by one step in the index, however many devices have it.

        Raises:
            Unavailable: The database does not answer.
        """
        found: list[str] = []
        async with self._sql.reading() as connection:
            while len(found) < MOST_KEYS:
                keys = select(DEVICE_TAG.c.key).where(DEVICE_TAG.c.tenant == tenant)
                following = keys.where(DEVICE_TAG.c.key > found[-1]) if found else keys
                key = (await connection.execute(following.order_by(DEVICE_TAG.c.key).limit(1))).scalar()
                if key is None:
                    break
                found.append(key)
        return found
