"""The history of presence: when devices connected and disconnected."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import delete, select, tuple_

from fleet.adapters.sql.database import Database
from fleet.adapters.sql.mac_numbers import mac_number
from fleet.adapters.sql.schema import PRESENCE

MOST_ENTRIES = 5_000_000
"""Entries of all devices together; the oldest ones go."""
_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class PresenceEntry:
    """A change of presence; the time is in milliseconds since 1970."""

    at: int
    online: bool


class PresenceRows:
    """Reads and bounds the history. All methods raise `Unavailable` while the database does not answer."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(
        self, tenant: int, mac: str, *, since: int = 0, before: int = 2**62, limit: int = 100
    ) -> Sequence[PresenceEntry]:
        """Return the newest changes of a device within a time, the newest first."""
        of = (PRESENCE.c.tenant == tenant, PRESENCE.c.mac == mac_number(mac))
        found = select(PRESENCE.c.at, PRESENCE.c.online).where(*of, PRESENCE.c.at >= since, PRESENCE.c.at < before)
        async with self._database.reading() as connection:
            rows = (await connection.execute(found.order_by(PRESENCE.c.at.desc()).limit(limit))).all()
        return [PresenceEntry(at, online) for at, online in rows]

    async def drop(self, before: int, most: int = MOST_ENTRIES) -> int:
        """Delete some entries from before a time, or beyond a number of entries; return how many were deleted."""
        newest = select(PRESENCE.c.at).order_by(PRESENCE.c.at.desc()).offset(most).limit(1)
        async with self._database.reading() as connection:
            surplus = (await connection.execute(newest)).scalar_one_or_none() or 0
        key = (PRESENCE.c.tenant, PRESENCE.c.mac, PRESENCE.c.at)
        some = select(*key).where(PRESENCE.c.at < max(before, surplus + 1)).order_by(PRESENCE.c.at).limit(_AT_ONCE)
        async with self._database.writing() as connection:
            rows = [tuple(row) for row in await connection.execute(some)]
            if rows:
                await connection.execute(delete(PRESENCE).where(tuple_(*key).in_(rows)))
        return len(rows)
