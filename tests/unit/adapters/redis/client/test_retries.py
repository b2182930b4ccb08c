import asyncio
from collections.abc import Awaitable, Callable

import pytest
from redis.exceptions import AuthenticationError, BusyLoadingError, ClusterDownError, ReadOnlyError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from fleet.adapters.redis.client import retries
from fleet.adapters.redis.client.retries import RetryPolicy, passes


class Server:
    """Fails in the given ways, one after the other, then answers."""

    def __init__(self, *faults: Exception) -> None:
        self.faults = list(faults)
        self.refreshed: list[BaseException] = []
        self.asked = 0

    async def ask(self) -> str:
        self.asked += 1
        if self.faults:
            raise self.faults.pop(0)
        return "answer"

    async def refresh(self, fault: BaseException) -> None:
        self.refreshed.append(fault)


async def never() -> str:
    await asyncio.Event().wait()
    return ""


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "LIMIT_SECONDS", 0.3)


async def test_a_command_is_repeated_while_the_server_is_away() -> None:
    faults = (RedisConnectionError("refused"), BusyLoadingError("LOADING"), ReadOnlyError("READONLY"))
    server = Server(*faults)
    patient = RetryPolicy(1, server.refresh)
    assert await patient.run(server.ask) == "answer"
    assert server.refreshed == list(faults)
    assert patient.faults == 3


@pytest.mark.parametrize("fault", [ResponseError("OOM"), AuthenticationError("WRONGPASS"), ResponseError("FENCED x")])
async def test_what_the_server_refuses_is_not_repeated(fault: Exception) -> None:
    server = Server(fault)
    with pytest.raises(type(fault)):
        await RetryPolicy(1, server.refresh).run(server.ask)
    assert server.asked == 1


def test_what_passes() -> None:
    assert all(map(passes, (ClusterDownError("x"), ResponseError("NOREPLICAS x"), OSError(), TimeoutError())))
    assert not any(map(passes, (ResponseError("ERR x"), AuthenticationError("x"))))


@pytest.mark.usefixtures("short")
async def test_a_server_that_stays_away_is_given_up() -> None:
    server = Server(*[RedisConnectionError("refused")] * 1000)
    async with asyncio.timeout(240):
        with pytest.raises(RedisTimeoutError, match="refused"):
            await RetryPolicy(1, server.refresh).run(server.ask)
    assert server.asked > 1


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("stuck", ["answer", "refresh", "place"])
async def test_nothing_blocks_for_ever(stuck: str) -> None:
    async def hang(_: BaseException) -> None:
        await never()

    async def fail() -> str:
        raise RedisConnectionError("lost")

    works: dict[str, tuple[int, Callable[[], Awaitable[str]]]] = {
        "answer": (1, never),
        "refresh": (1, fail),
        "place": (0, fail),
    }
    places, work = works[stuck]
    async with asyncio.timeout(240):
        with pytest.raises(RedisTimeoutError):
            await RetryPolicy(places, hang, answer=0.05).run(work)


async def test_a_place_is_given_back_by_what_failed() -> None:
    server = Server(RedisConnectionError("lost"))
    patient = RetryPolicy(1, server.refresh, answer=0.05)
    async with asyncio.timeout(240):
        assert await patient.run(server.ask) == "answer"
        with pytest.raises(ResponseError):
            await patient.run(Server(ResponseError("no")).ask)
        assert await patient.run(server.ask) == "answer"


async def test_commands_at_a_time_are_bounded() -> None:
    running, most = 0, 0

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    patient = RetryPolicy(3, Server().refresh)
    async with asyncio.TaskGroup() as group:
        for _ in range(50):
            group.create_task(patient.run(work))
    assert most == 3
