"""Groups of devices: static ones with members, dynamic ones with a query."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import CursorResult, Row, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from fleet.adapters.sql.device_rows import VersionConflict
from fleet.adapters.sql.given_numbers import new_number
from fleet.adapters.sql.mac_numbers import mac_number, mac_text
from fleet.adapters.sql.schema import DEVICE, GROUP, GROUP_MEMBER
from fleet.adapters.sql.token_rows import NameTaken
from fleet.adapters.sql.transaction import Sql
from fleet.adapters.sql.upserts import insert_if_absent


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group; without a query it is static. `version` rises with each change but those of members."""

    id: int
    name: str
    query: str
    notes: str
    version: int


@dataclass(frozen=True, slots=True)
class GroupChange:
    """What a person changes of a group; None leaves it as it is."""

    name: str | None = None
    query: str | None = None
    notes: str | None = None


class GroupRows:
    """Reads and changes the groups of one tenant. All methods raise `Unavailable` while the database does not answer.

    Args:
        sql: The database, or a transaction.
        tenant: Whose groups.
    """

    def __init__(self, sql: Sql, tenant: int) -> None:
        self._sql, self._tenant = sql, tenant

    async def page(self, after: int, limit: int) -> list[GroupRow]:
        """Return groups with ids above `after`, in the order of their ids."""
        found = self._found().where(GROUP.c.id > after).order_by(GROUP.c.id).limit(limit)
        async with self._sql.reading() as connection:
            return [_group(row) for row in (await connection.execute(found)).all()]

    async def count(self) -> int:
        """Return how many groups the tenant has."""
        async with self._sql.reading() as connection:
            counted = select(func.count()).select_from(GROUP).where(GROUP.c.tenant == self._tenant)
            return int((await connection.execute(counted)).scalar_one())

    async def read(self, group: int) -> GroupRow | None:
        """Return a group; None if this tenant has no such group."""
        async with self._sql.reading() as connection:
            row = (await connection.execute(self._found().where(GROUP.c.id == group))).one_or_none()
        return None if row is None else _group(row)

    async def add(self, name: str, query: str, notes: str) -> GroupRow:
        """Add a group.

        Raises:
            NameTaken: The tenant has a group with this name.
        """
        values = {"tenant": self._tenant, "name": name, "query": query, "notes": notes}
        values |= new_number(self._sql, GROUP)
        async with self._sql.writing() as connection:
            try:
                return _group((await connection.execute(insert(GROUP).values(values).returning(GROUP))).one())
            except IntegrityError as error:
                raise NameTaken(f"there is a group {name} already") from error

    async def change(
        self, group: int, change: GroupChange, *, version: int | None = None
    ) -> tuple[GroupRow, GroupRow] | None:
        """Change a group; return it as it was and as it is, or None if this tenant has no such group.

        Raises:
            VersionConflict: It has another version than `version`.
            NameTaken: The tenant has another group with this name.
        """
        named = {"name": change.name, "query": change.query, "notes": change.notes}
        values = {name: value for name, value in named.items() if value is not None}
        async with self._sql.writing() as connection:
            row = (await connection.execute(self._found().where(GROUP.c.id == group).with_for_update())).one_or_none()
            if row is None:
                return None
            if version is not None and row.version != version:
                raise VersionConflict(f"the group has version {row.version}")
            statement = update(GROUP).where(GROUP.c.id == group).values(**values, version=GROUP.c.version + 1)
            try:
                after = (await connection.execute(statement.returning(GROUP))).one()
            except IntegrityError as error:
                raise NameTaken(f"there is a group {change.name} already") from error
            return _group(row), _group(after)

    async def remove(self, group: int, *, version: int | None = None) -> bool:
        """Delete a group; its devices stay. Return whether it was there.

        Raises:
            VersionConflict: It has another version than `version`.
        """
        where = [GROUP.c.tenant == self._tenant, GROUP.c.id == group]
        where += [] if version is None else [GROUP.c.version == version]
        async with self._sql.writing() as connection:
            gone = cast("CursorResult[Any]", await connection.execute(delete(GROUP).where(*where))).rowcount > 0
        if not gone and await self.read(group) is not None:
            raise VersionConflict("somebody else changed the group")
        return gone

    async def add_members(self, group: int, macs: Sequence[str]) -> list[str]:
        """Add devices to a static group of this tenant; return the MACs that are none of its devices."""
        numbers = [mac_number(mac) for mac in macs]
        own = select(DEVICE.c.mac).where(DEVICE.c.tenant == self._tenant, DEVICE.c.mac.in_(numbers))
        async with self._sql.writing() as connection:
            known = set((await connection.execute(own)).scalars())
            if known:
                rows = [{"group": group, "mac": mac} for mac in known]
                await connection.execute(insert_if_absent(GROUP_MEMBER, is_sqlite=self._sql.is_sqlite), rows)
        return [mac_text(number) for number in numbers if number not in known]

    async def remove_members(self, group: int, macs: Sequence[str]) -> int:
        """Remove devices from a static group of this tenant; return how many were in it."""
        numbers = [mac_number(mac) for mac in macs]
        statement = delete(GROUP_MEMBER).where(GROUP_MEMBER.c.group == group, GROUP_MEMBER.c.mac.in_(numbers))
        async with self._sql.writing() as connection:
            return cast("CursorResult[Any]", await connection.execute(statement)).rowcount

    def _found(self) -> Any:
        return select(GROUP).where(GROUP.c.tenant == self._tenant)


def _group(row: Row[Any]) -> GroupRow:
    return GroupRow(row.id, row.name, row.query, row.notes, row.version)
