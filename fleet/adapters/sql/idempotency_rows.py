"""Answers to requests that may be repeated: the same key gets the same answer, and nothing happens twice.

A request reserves its key before it begins, and its answer is written in the transaction of the change itself. So after
a crash either both are there or none. A reservation ends after some seconds; who then reserves the key is its new
owner, and the former owner's transaction fails.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import CursorResult, Row, Update, and_, delete, func, select, update

from fleet.adapters.sql.schema import IDEMPOTENCY
from fleet.adapters.sql.transaction import Sql
from fleet.adapters.sql.upserts import insert_if_absent
from fleet.ground.errors import FleetError

RESERVED_MS = 30_000
"""Life of a reservation; an endpoint that runs longer loses it, unless it has begun what cannot be undone."""
KEPT_MS = 86_400_000
"""Life of an answer, and of a request that has begun what cannot be undone."""
MOST_KEPT = 50_000
"""Rows of one tenant; the oldest give way."""
_UNDER_WAY, _BEGUN = 0, 1


class KeyInUse(FleetError):
    """A request with this key is under way."""


class KeyMismatch(FleetError):
    """Another request had this key."""


class OutcomeUnknown(FleetError):
    """A request with this key has begun what cannot be undone, and its process ended: it may have happened."""


class ReservationLost(FleetError):
    """The request took too long, and a repeated one began in its place."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A key that this request has."""

    tenant: int
    key: str
    owner: str


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The answer to the first request with a key."""

    status: int
    body: str
    headers: Mapping[str, str]


class IdempotencyRows:
    """Reserves keys and keeps answers.

    Args:
        sql: The database, or the transaction of the change.
    """

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    async def reserve(self, wanted: Reservation, digest: str, now: int) -> KeptAnswer | None:
        """Take a key; return the answer if the request was answered already.

        Args:
            wanted: The key, and an owner of its own for each request.
            digest: Of the request.
            now: Milliseconds since 1970.

        Raises:
            KeyInUse: Its request is under way.
            KeyMismatch: It belongs to another request.
            OutcomeUnknown: Its request may have had its effect.
        """
        values = {"tenant": wanted.tenant, "key": wanted.key, "request_digest": digest, "owner": wanted.owner}
        fresh = {"status": _UNDER_WAY, "body": "", "headers": None, "expires": now + RESERVED_MS}
        async with self._sql.writing() as connection:
            insert = insert_if_absent(IDEMPOTENCY, is_sqlite=self._sql.is_sqlite).values(**values, **fresh)
            if cast("CursorResult[Any]", await connection.execute(insert)).rowcount:
                return None
            row = (await connection.execute(select(IDEMPOTENCY).where(_named(wanted)).with_for_update())).one()
            if row.expires <= now:
                await connection.execute(update(IDEMPOTENCY).where(_named(wanted)).values(**values, **fresh))
                return None
        return _judge(row, digest)

    async def begin(self, held: Reservation, now: int) -> None:
        """Note that the request begins what cannot be undone: it will never run again.

        Raises:
            ReservationLost: Another request has the key now.
        """
        await self._change(_held(held).values(status=_BEGUN, expires=now + KEPT_MS))

    async def settle(self, held: Reservation, answer: KeptAnswer, now: int) -> None:
        """Keep the answer.

        Raises:
            ReservationLost: Another request has the key now.
        """
        values = {"status": answer.status, "body": answer.body, "headers": dict(answer.headers)}
        await self._change(_held(held).values(**values, expires=now + KEPT_MS))

    async def release(self, held: Reservation) -> None:
        """Give a key back whose request has changed nothing."""
        under_way = and_(_named(held), IDEMPOTENCY.c.owner == held.owner, IDEMPOTENCY.c.status == _UNDER_WAY)
        async with self._sql.writing() as connection:
            await connection.execute(delete(IDEMPOTENCY).where(under_way))

    async def release_all(self) -> None:
        """Give all keys back whose requests are under way: no process but this one has the database."""
        async with self._sql.writing() as connection:
            await connection.execute(delete(IDEMPOTENCY).where(IDEMPOTENCY.c.status == _UNDER_WAY))

    async def tidy(self, now: int, most: int = MOST_KEPT) -> None:
        """Delete what has expired, and of each tenant what is more than `most` rows."""
        table, answered = IDEMPOTENCY, IDEMPOTENCY.c.status != _UNDER_WAY
        counts = select(table.c.tenant, func.count().label("rows")).where(answered).group_by(table.c.tenant)
        async with self._sql.writing() as connection:
            await connection.execute(delete(table).where(table.c.expires <= now))
            many = (await connection.execute(counts.having(func.count() > most))).all()
            for tenant, rows in many:
                mine = and_(table.c.tenant == tenant, answered)
                oldest = select(table.c.expires).where(mine).order_by(table.c.expires)
                bound = (await connection.execute(oldest.offset(rows - most - 1).limit(1))).scalar_one()
                await connection.execute(delete(table).where(mine, table.c.expires <= bound))

    async def _change(self, statement: Update) -> None:
        async with self._sql.writing() as connection:
            if not cast("CursorResult[Any]", await connection.execute(statement)).rowcount:
                raise ReservationLost("the request took too long; repeat it with the same key")


def _named(key: Reservation) -> Any:
    return and_(IDEMPOTENCY.c.tenant == key.tenant, IDEMPOTENCY.c.key == key.key)


def _held(key: Reservation) -> Update:
    mine = and_(IDEMPOTENCY.c.owner == key.owner, IDEMPOTENCY.c.status.in_((_UNDER_WAY, _BEGUN)))
    return update(IDEMPOTENCY).where(_named(key), mine)


def _judge(row: Row[Any], digest: str) -> KeptAnswer:
    if row.request_digest != digest:
        raise KeyMismatch("this key belongs to another request")
    if row.status == _UNDER_WAY:
        raise KeyInUse("a request with this key is under way")
    if row.status == _BEGUN:
        raise OutcomeUnknown("a request with this key was begun, and may have had its effect")
    return KeptAnswer(row.status, row.body, row.headers or {})
