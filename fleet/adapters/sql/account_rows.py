"""Operators' accounts: name, role, and the hash of the password."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import ColumnElement, CursorResult, Row, delete, exists, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from fleet.adapters.sql.account_schema import ACCOUNT, SIGN_OUT
from fleet.adapters.sql.given_numbers import new_number
from fleet.adapters.sql.schema import TENANT
from fleet.adapters.sql.token_rows import NameTaken
from fleet.adapters.sql.transaction import Sql
from fleet.adapters.sql.upserts import insert_if_absent


@dataclass(frozen=True, slots=True)
class AccountRow:
    """An account. Times are milliseconds since 1970; `epoch` rises whenever all its sign-ins end."""

    id: int
    tenant: int
    name: str
    role: str
    epoch: int
    disabled: bool
    created: int
    last_sign_in: int | None


class AccountRows:
    """Reads and changes accounts. All methods raise `Unavailable` while the database does not answer.

    Args:
        sql: The database, or a transaction.
    """

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    async def any_exist(self) -> bool:
        """Return whether there is an account of any tenant."""
        async with self._sql.reading() as connection:
            return (await connection.execute(select(ACCOUNT.c.id).limit(1))).first() is not None

    async def named(self, tenant: str, name: str) -> tuple[AccountRow, str] | None:
        """Return an account with the hash of its password, by the slug of its tenant and its name in any case.

        Accounts of earlier versions may differ by case only: then the name as it is counts, else the oldest of them.
        """
        found = select(ACCOUNT).join(TENANT, TENANT.c.id == ACCOUNT.c.tenant).where(TENANT.c.slug == tenant, _is(name))
        first = found.order_by((ACCOUNT.c.name == name).desc(), ACCOUNT.c.id).limit(1)
        async with self._sql.reading() as connection:
            row = (await connection.execute(first)).one_or_none()
        return None if row is None else (_account(row), row.password)

    async def password(self, tenant: int, account: int) -> str:
        """Return the hash of an account's password; empty if this tenant has no such account."""
        found = select(ACCOUNT.c.password).where(ACCOUNT.c.tenant == tenant, ACCOUNT.c.id == account)
        async with self._sql.reading() as connection:
            return str((await connection.execute(found)).scalar_one_or_none() or "")

    async def signed_in(self, account: int, epoch: int, digest: str) -> AccountRow | None:
        """Return the account of a sign-in that counts; None if it was ended, or the account may not sign in."""
        ended = exists().where(SIGN_OUT.c.digest == digest)
        found = select(ACCOUNT).where(ACCOUNT.c.id == account, ACCOUNT.c.epoch == epoch, ~ACCOUNT.c.disabled, ~ended)
        async with self._sql.reading() as connection:
            row = (await connection.execute(found)).one_or_none()
        return None if row is None else _account(row)

    async def epochs(self, accounts: Collection[int]) -> dict[int, int]:
        """Return the epochs of those accounts that may sign in."""
        found = select(ACCOUNT.c.id, ACCOUNT.c.epoch).where(ACCOUNT.c.id.in_(accounts), ~ACCOUNT.c.disabled)
        async with self._sql.reading() as connection:
            return {row.id: row.epoch for row in (await connection.execute(found)).all()}

    async def page(self, tenant: int, after: int, limit: int) -> list[AccountRow]:
        """Return a tenant's accounts with ids above `after`, in the order of their ids."""
        mine = select(ACCOUNT).where(ACCOUNT.c.tenant == tenant, ACCOUNT.c.id > after)
        async with self._sql.reading() as connection:
            return [_account(row) for row in (await connection.execute(mine.order_by(ACCOUNT.c.id).limit(limit))).all()]

    async def count(self, tenant: int) -> int:
        counted = select(func.count()).select_from(ACCOUNT).where(ACCOUNT.c.tenant == tenant)
        async with self._sql.reading() as connection:
            return int((await connection.execute(counted)).scalar_one())

    async def lock(self, tenant: int) -> None:
        """Let no other transaction change accounts of a tenant before this one ends."""
        async with self._sql.writing() as connection:
            # What refers to the tenant can be written meanwhile.
            await connection.execute(select(TENANT.c.id).where(TENANT.c.id == tenant).with_for_update(key_share=True))

    async def read(self, tenant: int, account: int) -> AccountRow | None:
        """Return an account; None if this tenant has no such account."""
        found = select(ACCOUNT).where(ACCOUNT.c.tenant == tenant, ACCOUNT.c.id == account)
        async with self._sql.reading() as connection:
            row = (await connection.execute(found)).one_or_none()
        return None if row is None else _account(row)

    async def others(self, tenant: int, account: int, role: str) -> int:
        """Return how many other accounts have a role and may sign in."""
        same = (ACCOUNT.c.tenant == tenant, ACCOUNT.c.role == role, ACCOUNT.c.id != account, ~ACCOUNT.c.disabled)
        async with self._sql.reading() as connection:
            return int((await connection.execute(select(func.count()).select_from(ACCOUNT).where(*same))).scalar_one())

    async def add(self, tenant: int, name: str, role: str, password: str, now: int) -> AccountRow:
        """Add an account with the hash of its password.

        Raises:
            NameTaken: The tenant has an account with this name, if also in another case.
        """
        await self.lock(tenant)
        values = {"tenant": tenant, "name": name, "role": role, "password": password, "created": now}
        statement = insert(ACCOUNT).values(**new_number(self._sql, ACCOUNT), **values).returning(ACCOUNT)
        try:
            async with self._sql.writing() as connection:
                same = select(ACCOUNT.c.name).where(ACCOUNT.c.tenant == tenant, _is(name)).limit(1)
                if known := (await connection.execute(same)).scalar_one_or_none():
                    raise NameTaken(f"there is an account {known} already")
                return _account((await connection.execute(statement)).one())
        except IntegrityError as error:
            raise NameTaken(f"there is an account {name} already") from error

    async def change(self, account: int, **values: Any) -> AccountRow:
        """Change columns of an account that exists, and end all its sign-ins."""
        changed = update(ACCOUNT).where(ACCOUNT.c.id == account).values(**values, epoch=ACCOUNT.c.epoch + 1)
        async with self._sql.writing() as connection:
            return _account((await connection.execute(changed.returning(ACCOUNT))).one())

    async def note_sign_in(self, account: int, now: int) -> None:
        async with self._sql.writing() as connection:
            await connection.execute(update(ACCOUNT).where(ACCOUNT.c.id == account).values(last_sign_in=now))

    async def remove(self, account: int) -> None:
        async with self._sql.writing() as connection:
            await connection.execute(delete(ACCOUNT).where(ACCOUNT.c.id == account))


class SignOuts:
    """Remembers sign-ins that were ended until they would have ended by themselves.

    Args:
        sql: The database, or a transaction.
    """

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    async def add(self, digest: str, until: int) -> None:
        async with self._sql.writing() as connection:
            absent = insert_if_absent(SIGN_OUT, is_sqlite=self._sql.is_sqlite)
            await connection.execute(absent.values(digest=digest, until=until))

    async def among(self, digests: Collection[str]) -> set[str]:
        """Return which of these sign-ins were ended."""
        async with self._sql.reading() as connection:
            found = select(SIGN_OUT.c.digest).where(SIGN_OUT.c.digest.in_(digests))
            return set((await connection.execute(found)).scalars())

    async def tidy(self, now: int) -> int:
        """Forget those that would have ended by now; return how many they were."""
        async with self._sql.writing() as connection:
            statement = delete(SIGN_OUT).where(SIGN_OUT.c.until <= now)
            return cast("CursorResult[Any]", await connection.execute(statement)).rowcount


def _is(name: str) -> ColumnElement[bool]:
    return func.lower(ACCOUNT.c.name) == name.lower()


def _account(row: Row[Any]) -> AccountRow:
    return AccountRow(row.id, row.tenant, row.name, row.role, row.epoch, row.disabled, row.created, row.last_sign_in)
