"""The bearer tokens of people and programs."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import CursorResult, Row, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from fleet.adapters.sql.given_numbers import new_number
from fleet.adapters.sql.schema import TENANT, TOKEN
from fleet.adapters.sql.transaction import Sql
from fleet.ground.errors import FleetError

USE_MS = 60_000
"""How precisely the last use of a token is kept."""
FIRST_TENANT = 1


class NameTaken(FleetError):
    """The tenant has an object with this name already."""


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token without its secret. Times are milliseconds since 1970; `expires` and `last_used` may be None."""

    id: int
    tenant: int
    name: str
    scopes: frozenset[str]
    created: int
    expires: int | None
    last_used: int | None


class TokenRows:
    """Reads and changes the tokens of all tenants.

    Args:
        sql: The database, or a transaction.
    """

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    async def by_digest(self, digest: str, now: int) -> TokenRow | None:
        """Return the token with a digest (SHA-256, hex) if it is valid at `now` (ms)."""
        valid = or_(TOKEN.c.expires.is_(None), TOKEN.c.expires > now)
        async with self._sql.reading() as connection:
            row = (await connection.execute(select(TOKEN).where(TOKEN.c.digest == digest, valid))).one_or_none()
        return None if row is None else _token(row)

    async def existing(self, tokens: Collection[int]) -> set[int]:
        """Return those of some ids that tokens have: the others were revoked."""
        async with self._sql.reading() as connection:
            return set((await connection.execute(select(TOKEN.c.id).where(TOKEN.c.id.in_(tokens)))).scalars())

    async def used(self, token: int, now: int) -> None:
        """Note a use of a token, unless one was noted within `USE_MS`."""
        unnoted = or_(TOKEN.c.last_used.is_(None), TOKEN.c.last_used <= now - USE_MS)
        async with self._sql.writing() as connection:
            await connection.execute(update(TOKEN).where(TOKEN.c.id == token, unnoted).values(last_used=now))

    async def any_exist(self) -> bool:
        """Return whether there is a token of any tenant."""
        async with self._sql.reading() as connection:
            return (await connection.execute(select(TOKEN.c.id).limit(1))).first() is not None

    async def count(self, tenant: int) -> int:
        async with self._sql.reading() as connection:
            found = select(func.count()).select_from(TOKEN).where(TOKEN.c.tenant == tenant)
            return int((await connection.execute(found)).scalar_one())

    async def page(self, tenant: int, after: int, limit: int) -> list[TokenRow]:
        """Return a tenant's tokens with ids above `after`, at most `limit`, in the order of their ids."""
        found = select(TOKEN).where(TOKEN.c.tenant == tenant, TOKEN.c.id > after).order_by(TOKEN.c.id).limit(limit)
        async with self._sql.reading() as connection:
            return [_token(row) for row in (await connection.execute(found)).all()]

    async def read(self, tenant: int, token: int) -> TokenRow | None:
        """Return a tenant's token; None if it has no such token."""
        found = select(TOKEN).where(TOKEN.c.tenant == tenant, TOKEN.c.id == token)
        async with self._sql.reading() as connection:
            row = (await connection.execute(found)).one_or_none()
        return None if row is None else _token(row)

    async def add(
        self, tenant: int, name: str, digest: str, scopes: Sequence[str], now: int, expires: int | None = None
    ) -> TokenRow:
        """Add a token.

        Raises:
            NameTaken: The tenant has a token with this name.
        """
        values = {"tenant": tenant, "name": name, "digest": digest, "scopes": sorted(scopes)}
        statement = (
            insert(TOKEN)
            .values(**new_number(self._sql, TOKEN), **values, created=now, expires=expires)
            .returning(TOKEN)
        )
        try:
            async with self._sql.writing() as connection:
                return _token((await connection.execute(statement)).one())
        except IntegrityError as error:
            raise NameTaken(f"there is a token {name} already") from error

    async def remove(self, tenant: int, token: int) -> bool:
        """Delete a tenant's token; return whether it was there."""
        statement = delete(TOKEN).where(TOKEN.c.tenant == tenant, TOKEN.c.id == token)
        async with self._sql.writing() as connection:
            return cast("CursorResult[Any]", await connection.execute(statement)).rowcount > 0

    async def tenant_name(self, tenant: int) -> str:
        """Return the slug of a tenant."""
        async with self._sql.reading() as connection:
            return str((await connection.execute(select(TENANT.c.slug).where(TENANT.c.id == tenant))).scalar_one())


def _token(row: Row[Any]) -> TokenRow:
    return TokenRow(row.id, row.tenant, row.name, frozenset(row.scopes), row.created, row.expires, row.last_used)
