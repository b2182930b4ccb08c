"""Many commands on one connection, against a real Redis."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import ConnectionPool, Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ReadOnlyError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from fleet.adapters.redis.client import pipeline
from fleet.adapters.redis.client.pipeline import PipelinedConnection
from tests.support.leaping import leaping

LIMIT = 240
SHORT, GATHER = 100.0, 10.0


@pytest.fixture
async def pool(redis_url: str) -> AsyncIterator[ConnectionPool]:
    made = ConnectionPool.from_url(redis_url, decode_responses=True)
    yield made
    await made.disconnect()


@pytest.fixture
async def line(pool: ConnectionPool) -> AsyncIterator[PipelinedConnection]:
    made = PipelinedConnection(pool, LIMIT)
    yield made
    await made.drop()


async def one(line: PipelinedConnection, *words: object) -> object:
    async with asyncio.timeout(LIMIT):
        (answer,) = await line.ask([words])
    return answer


async def test_commands_of_the_same_moment_share_a_connection_and_get_their_own_answers(
    line: PipelinedConnection,
) -> None:
    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
        tasks = [group.create_task(line.ask([("ECHO", f"é{n}"), ("INCRBY", "sum", n)]), name=str(n)) for n in range(50)]
    assert [task.result()[0] for task in tasks] == [f"é{number}" for number in range(50)]
    assert await one(line, "GET", "sum") == str(sum(range(50)))
    assert str(await one(line, "CLIENT", "LIST")).count("addr=") == 2  # `addr` and `laddr` of one connection


async def test_commands_that_come_often_leave_together(
    line: PipelinedConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "BUSY_SECONDS", float(LIMIT))
    monkeypatch.setattr(pipeline, "GATHER_SECONDS", GATHER)
    leap = leaping(monkeypatch)
    for number in range(pipeline.BUSY_FLUSHES):
        assert await one(line, "ECHO", number) == str(number)
    assert line._wire
    flushed = list(line._wire._flushed)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(one(line, "ECHO", "first"))
        await asyncio.sleep(0.001)
        second = group.create_task(one(line, "ECHO", "second"))
        await asyncio.sleep(0)
        leap(GATHER)
    assert (first.result(), second.result()) == ("first", "second")
    assert list(line._wire._flushed)[-2] == flushed[-1]


async def test_error_of_one_command_leaves_the_others_alone(line: PipelinedConnection) -> None:
    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
        good = group.create_task(line.ask([("ECHO", "good")]), name="good")
        with pytest.raises(ResponseError):
            await line.ask([("SET", "key", "text"), ("LPUSH", "key", "x"), ("SET", "after", "1")])
    assert good.result() == ["good"]
    assert await one(line, "GET", "after") == "1"


async def test_who_asked_may_go_without_confusing_the_others(line: PipelinedConnection) -> None:
    await one(line, "ECHO", "connected")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await line.ask([("ECHO", "nobody waits for this")])
    assert await one(line, "ECHO", "mine") == "mine"


@pytest.mark.parametrize(("unfit", "fault"), [("half a character: \ud800", UnicodeEncodeError), (None, TypeError)])
async def test_command_that_cannot_be_written_gives_nobody_the_answer_of_another(
    line: PipelinedConnection, unfit: object, fault: type[Exception]
) -> None:
    await one(line, "ECHO", "connected")
    with pytest.raises(fault):
        await line.ask([("ECHO", "fit"), ("ECHO", unfit)])
    assert await one(line, "ECHO", "mine") == "mine"


async def test_server_that_does_not_answer_is_given_up_and_asked_again_on_another_connection(
    pool: ConnectionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    line, leap = PipelinedConnection(pool, SHORT), leaping(monkeypatch)
    await one(line, "ECHO", "connected")
    async with asyncio.TaskGroup() as group:
        group.create_task(_unanswered(line))
        await asyncio.sleep(0)
        leap(SHORT + 1)
    assert not line.connected
    assert await one(line, "ECHO", "again") == "again"
    await line.drop()


async def test_lost_connection_fails_what_is_under_way_and_the_next_command_connects(
    line: PipelinedConnection, redis_url: str
) -> None:
    number = await one(line, "CLIENT", "ID")
    async with asyncio.timeout(LIMIT), Redis.from_url(redis_url) as other, asyncio.TaskGroup() as group:
        waiting = group.create_task(failure(line), name="waiting")
        await asyncio.sleep(0)
        await other.client_kill_filter(_id=str(number))
    assert isinstance(waiting.result(), RedisConnectionError)
    assert await one(line, "ECHO", "again") == "again"
    assert await one(line, "CLIENT", "ID") != number


async def test_server_that_became_a_replica_is_not_asked_again(line: PipelinedConnection, redis_url: str) -> None:
    async with Redis.from_url(redis_url) as other:
        await one(line, "ECHO", "connected")
        await other.replicaof("127.0.0.1", "1")
        try:
            with pytest.raises(ReadOnlyError):
                await one(line, "SET", "key", "text")
            assert not line.connected
        finally:
            await other.replicaof("NO", "ONE")
    assert await one(line, "SET", "key", "text") == "OK"


async def _unanswered(line: PipelinedConnection) -> None:
    with pytest.raises(RedisTimeoutError):
        await one(line, "BLPOP", "nothing", 0)


async def failure(line: PipelinedConnection) -> Exception | None:
    try:
        await line.ask([("BLPOP", "nothing", 0)])
    except RedisConnectionError as error:
        return error
    return None
