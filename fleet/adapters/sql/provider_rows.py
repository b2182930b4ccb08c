"""The catalogue of providers of a tenant; keys are encrypted before they come here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import CursorResult, Row, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from fleet.adapters.sql.device_rows import VersionConflict
from fleet.adapters.sql.given_numbers import new_number
from fleet.adapters.sql.schema import PROVIDER
from fleet.adapters.sql.token_rows import NameTaken
from fleet.adapters.sql.transaction import Sql


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """A provider. `secret` is its key, encrypted; a `sample_rate` of 0 means the setting's."""

    id: int
    tenant: int
    name: str
    kind: str
    adapter: str
    base_url: str
    secret: str
    model: str
    voices: Sequence[str]
    sample_rate: int
    version: int


class ProviderRows:
    """Reads and changes the providers of one tenant.

    Args:
        sql: The database, or a transaction.
        tenant: Whose.
    """

    def __init__(self, sql: Sql, tenant: int) -> None:
        self._sql = sql
        self._tenant = tenant

    async def count(self) -> int:
        found = select(func.count()).select_from(PROVIDER).where(PROVIDER.c.tenant == self._tenant)
        async with self._sql.reading() as connection:
            return int((await connection.execute(found)).scalar_one())

    async def page(self, after: int, limit: int) -> list[ProviderRow]:
        """Return providers with ids above `after`, at most `limit`, in the order of their ids."""
        found = select(PROVIDER).where(PROVIDER.c.tenant == self._tenant, PROVIDER.c.id > after)
        async with self._sql.reading() as connection:
            rows = (await connection.execute(found.order_by(PROVIDER.c.id).limit(limit))).all()
        return [_provider(row) for row in rows]

    async def read(self, provider: int) -> ProviderRow | None:
        return await self._one(PROVIDER.c.id == provider)

    async def find(self, name: str) -> ProviderRow | None:
        """Return the provider with a name."""
        return await self._one(PROVIDER.c.name == name)

    async def add(self, **fields: Any) -> ProviderRow:
        """Add a provider.

        Raises:
            NameTaken: The tenant has one with this name.
        """
        statement = (
            insert(PROVIDER)
            .values(**new_number(self._sql, PROVIDER), tenant=self._tenant, **fields)
            .returning(PROVIDER)
        )
        try:
            async with self._sql.writing() as connection:
                return _provider((await connection.execute(statement)).one())
        except IntegrityError as error:
            raise NameTaken("there is a provider with this name already") from error

    async def change(self, provider: int, expected: int | None, **fields: Any) -> ProviderRow | None:
        """Change fields of a provider; return it, or None if there is none.

        Raises:
            VersionConflict: It has another version than the expected one.
        """
        if await self.read(provider) is None:
            return None
        where = [PROVIDER.c.tenant == self._tenant, PROVIDER.c.id == provider]
        where += [] if expected is None else [PROVIDER.c.version == expected]
        changed = update(PROVIDER).where(*where).values(**fields, version=PROVIDER.c.version + 1).returning(PROVIDER)
        async with self._sql.writing() as connection:
            row = (await connection.execute(changed)).one_or_none()
        if row is None:
            raise VersionConflict("somebody else changed the provider")
        return _provider(row)

    async def remove(self, provider: int, expected: int | None = None) -> bool:
        """Delete a provider; return whether it was there.

        Raises:
            VersionConflict: It has another version than the expected one.
        """
        where = [PROVIDER.c.tenant == self._tenant, PROVIDER.c.id == provider]
        where += [] if expected is None else [PROVIDER.c.version == expected]
        async with self._sql.writing() as connection:
            gone = cast("CursorResult[Any]", await connection.execute(delete(PROVIDER).where(*where))).rowcount > 0
        if not gone and await self.read(provider) is not None:
            raise VersionConflict("somebody else changed the provider")
        return gone

    async def _one(self, condition: Any) -> ProviderRow | None:
        found = select(PROVIDER).where(PROVIDER.c.tenant == self._tenant, condition)
        async with self._sql.reading() as connection:
            row = (await connection.execute(found)).one_or_none()
        return None if row is None else _provider(row)


def _provider(row: Row[Any]) -> ProviderRow:
    return ProviderRow(**{name: getattr(row, name) for name in ProviderRow.__dataclass_fields__})
