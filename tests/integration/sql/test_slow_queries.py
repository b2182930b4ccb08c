"""Queries that take too long, and queries whose caller has gone, on both kinds of database."""

import asyncio
import gc
import logging
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, TextClause, event, select, text

from fleet.adapters.sql.database import Database, database_url
from fleet.adapters.sql.sqlite_connections import PatientConnection
from fleet.ground.errors import SlowQuery

MINE, OTHER = 1, 2
LONG = 600.0


def endless(database: Database) -> TextClause:
    if database.is_sqlite:
        return text("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t")
    return text("SELECT count(*) FROM (SELECT generate_series(1, 1000000000000)) AS numbers")


async def look_for_ever(database: Database, tenant: int, seconds: float = LONG) -> int:
    statement = endless(database)
    return await database.look(
        lambda connection: int(connection.execute(statement).scalar_one()), tenant=tenant, seconds=seconds
    )


def one(connection: Connection) -> int:
    return int(connection.execute(select(1)).scalar_one())


async def test_a_query_is_ended_at_its_limit(database: Database) -> None:
    for _ in range(12):
        with pytest.raises(SlowQuery, match="took longer"):
            await look_for_ever(database, MINE, seconds=0.05)
    assert await database.look(one, tenant=MINE) == 1


async def test_a_block_of_statements_is_ended_at_its_limit(database: Database) -> None:
    for _ in range(12):
        with pytest.raises(SlowQuery, match="took longer"):
            async with database.reading(0.05) as connection:
                await connection.execute(endless(database))
    await database.ping()


async def test_the_slow_queries_of_one_tenant_leave_places_for_others(database: Database) -> None:
    slow = [asyncio.create_task(look_for_ever(database, MINE)) for _ in range(10)]
    try:
        await asyncio.sleep(0)
        assert await database.look(one, tenant=OTHER) == 1
    finally:
        for task in slow:
            task.cancel()
    await asyncio.wait(slow)
    assert await database.look(one, tenant=MINE) == 1


async def test_a_statement_whose_caller_has_gone_costs_no_connection(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    lost: list[object] = []
    async with database.reading() as connection:
        event.listen(connection.sync_engine, "invalidate", lambda *_: lost.append(1))
    gc.collect()
    caplog.clear()  # of what earlier tests left to the collector
    for _ in range(20):
        begun = asyncio.Event()

        async def read(begun: asyncio.Event = begun) -> None:
            async with database.reading(LONG) as connection:
                begun.set()
                await connection.execute(endless(database))

        work = asyncio.create_task(read())
        reading = asyncio.create_task(begun.wait())
        await asyncio.wait([reading, work], return_when=asyncio.FIRST_COMPLETED)
        assert reading.done(), work.exception()
        # The HTTP server cancels until the task has ended.
        while not work.done():
            work.cancel()
            await asyncio.sleep(0)
        assert work.cancelled()
    await database.ping()
    gc.collect()
    await asyncio.sleep(0)
    assert not lost
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


async def test_a_statement_of_sqlite_visits_the_thread_of_its_connection_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits, visit = [], PatientConnection._execute

    async def count(connection: PatientConnection, *arguments: Any, **named: Any) -> Any:
        visits.append(arguments)
        return await visit(connection, *arguments, **named)

    monkeypatch.setattr(PatientConnection, "_execute", count)
    database = Database(database_url(f"sqlite:///{tmp_path / 'x.db'}"))
    async with database.writing() as connection:
        await connection.execute(text("CREATE TABLE t (n INTEGER)"))
        visits.clear()
        added = await connection.execute(text("INSERT INTO t VALUES (1), (2) RETURNING n"))
        assert list(added.scalars()) == [1, 2]
        changed = await connection.execute(text("UPDATE t SET n = :n"), [{"n": 5}, {"n": 6}])
        assert changed.rowcount == 4
        assert len(visits) == 2
    await database.close()
