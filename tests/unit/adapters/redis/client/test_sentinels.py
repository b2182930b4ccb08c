"""redis-py's clients of three Sentinels, of which only the answer to one command is planned."""

import asyncio

import pytest
from redis.asyncio.sentinel import MasterNotFoundError
from redis.exceptions import TimeoutError as RedisTimeoutError

from fleet.adapters.redis.client.sentinels import Sentinels

PRIMARY = ("10.0.0.7", 6379)


class Answer:
    """What a Sentinel says when it is asked for primaries, once it may."""

    def __init__(self, *, down: bool = False, silent: bool = False) -> None:
        self.asked = 0
        self.may = asyncio.Event()
        self._down = down
        self._silent = silent

    async def __call__(self) -> dict[str, dict[str, object]]:
        self.asked += 1
        await self.may.wait()
        if self._silent:
            raise RedisTimeoutError
        ip, port = PRIMARY
        state = {"is_master": True, "is_sdown": self._down, "is_odown": False, "num-other-sentinels": 2}
        return {"fleet": {"ip": ip, "port": port, **state}}


def sentinels_that_say(monkeypatch: pytest.MonkeyPatch, *answers: Answer) -> Sentinels:
    sentinels = Sentinels([("127.0.0.1", port) for port in range(1, len(answers) + 1)], {})
    for client, answer in zip(sentinels.sentinels, answers, strict=True):
        monkeypatch.setattr(client, "sentinel_masters", answer)
    return sentinels


async def until_asked_twice(answer: Answer) -> None:
    async with asyncio.timeout(60):
        while answer.asked < 2:
            await asyncio.sleep(0)
    answer.may.set()


async def test_two_searches_at_a_time_lose_no_sentinel(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = Answer(down=True), Answer(), Answer()
    sentinels = sentinels_that_say(monkeypatch, first, second, third)
    one, two, three = sentinels.sentinels
    searches = [asyncio.ensure_future(sentinels.discover_master("fleet")) for _ in range(2)]
    await until_asked_twice(first)
    await until_asked_twice(second)
    assert [await search for search in searches] == [PRIMARY, PRIMARY]
    # Compared one by one: pytest cannot show a client.
    assert [each is known for each, known in zip(sentinels.sentinels, (two, one, three), strict=True)] == [True] * 3


async def test_the_one_that_knew_the_primary_is_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answer(silent=True), Answer(down=True), Answer()
    for answer in answers:
        answer.may.set()
    sentinels = sentinels_that_say(monkeypatch, *answers)
    assert await sentinels.discover_master("fleet") == PRIMARY
    assert await sentinels.discover_master("fleet") == PRIMARY
    assert [answer.asked for answer in answers] == [1, 1, 2]


async def test_none_is_lost_when_none_knows_the_primary(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answer(down=True), Answer(silent=True)
    for answer in answers:
        answer.may.set()
    sentinels = sentinels_that_say(monkeypatch, *answers)
    for count in (1, 2):
        with pytest.raises(MasterNotFoundError):
            await sentinels.discover_master("fleet")
        assert [answer.asked for answer in answers] == [count, count]
