import asyncio

import pytest

from fleet.adapters.net.http import readiness as module
from fleet.adapters.net.http.readiness import Readiness
from fleet.ground.errors import Unavailable


async def well() -> None:
    """Answers."""


async def test_it_starts_serves_and_leaves() -> None:
    readiness = Readiness()
    assert await readiness.look() == "starting"
    with readiness.serving():
        assert await readiness.look() == ""
    assert await readiness.look() == "leaving"


async def test_every_part_is_asked_while_it_is_there() -> None:
    readiness, answers = Readiness(), {"broker": True}
    with readiness.serving():
        with readiness.requiring("broker", lambda: answers["broker"]), readiness.pinging("redis", well):
            assert await readiness.look() == ""
            answers["broker"] = False
            assert await readiness.look() == "broker"
        assert await readiness.look() == ""


async def test_of_two_roles_with_one_part_both_must_be_well() -> None:
    readiness = Readiness()
    with (
        readiness.serving(),
        readiness.requiring("broker", lambda: True),
        readiness.requiring("broker", lambda: False),
        readiness.requiring("udp", lambda: True),
    ):
        assert await readiness.look() == "broker"


async def test_why_a_part_does_not_answer_is_told() -> None:
    async def refuse() -> None:
        raise Unavailable("no route")

    readiness = Readiness()
    with readiness.serving(), readiness.pinging("redis", refuse):
        assert await readiness.look() == "redis: no route"


async def test_a_part_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(module, "LIMIT_SECONDS", 0.01)
    readiness = Readiness()
    with readiness.serving(), readiness.pinging("redis", hang):
        async with asyncio.timeout(240):
            assert await readiness.look() == "redis: no answer in time"
