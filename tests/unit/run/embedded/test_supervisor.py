"""Servers that die, and are started again so often and no more."""

import asyncio
from collections.abc import Sequence

import pytest

from fleet.ground.errors import Unavailable
from fleet.ground.tasks import Backoff
from fleet.run.embedded import supervisor
from fleet.run.embedded.supervisor import MOST_STARTS, supervise


class Mortal:
    """Dies as often as `deaths` says, each time at its end or at its start, and then lives on."""

    def __init__(self, deaths: Sequence[str]) -> None:
        self._deaths = list(deaths)
        self.starts = 0
        self.lives = asyncio.Event()

    async def start(self) -> None:
        self.starts += 1
        if self._deaths[:1] == ["start"]:
            raise Unavailable(f"{self._deaths.pop(0)} failed")

    async def run(self) -> None:
        if self._deaths:
            raise Unavailable(f"{self._deaths.pop(0)} failed")
        self.lives.set()
        await asyncio.get_running_loop().create_future()


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "Backoff", lambda **_: Backoff(first=0, limit=0))


@pytest.mark.parametrize("deaths", [[], ["end"], ["end", "start", "end"], ["end"] * MOST_STARTS])
async def test_what_dies_is_started_again(deaths: list[str]) -> None:
    server = Mortal(deaths)
    keeping_it = asyncio.create_task(supervise("broker", server))
    async with asyncio.timeout(5):
        await server.lives.wait()
    assert server.starts == len(deaths)
    keeping_it.cancel()


@pytest.mark.parametrize("death", ["end", "start"])
async def test_what_dies_too_often_is_given_up_with_its_last_words(death: str) -> None:
    server = Mortal(["end", *[death] * 100])
    with pytest.raises(Unavailable, match=f"died again after {MOST_STARTS} starts: {death} failed"):
        async with asyncio.timeout(5):
            await supervise("redis", server)
    assert server.starts == MOST_STARTS
