import asyncio
from typing import Any, cast

import pytest

from fleet.ground.errors import Unavailable
from fleet.roles.worker.turns import deadline
from fleet.roles.worker.turns.deadline import TurnDeadline
from fleet.roles.worker.turns.speech import AnswerSpeech


class Edge:
    """A turn's speech and its edge, as `TurnDeadline` uses them."""

    def __init__(self) -> None:
        self.begun_at: float | None = None
        self.edge = self
        self.informed = 0
        self.enough = asyncio.Event()
        self.failure: Exception | None = None

    async def send_progress(self) -> None:
        self.informed += 1
        if self.informed >= 5:
            self.enough.set()
        if self.failure:
            raise self.failure


@pytest.fixture
def edge(monkeypatch: pytest.MonkeyPatch) -> Edge:
    monkeypatch.setattr(deadline, "PROGRESS_SECONDS", 0.05)
    return Edge()


def patient(edge: Edge, seconds: float) -> TurnDeadline:
    return TurnDeadline(seconds, cast("AnswerSpeech", cast("Any", edge)))


async def test_a_turn_that_takes_too_long_is_ended() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(10), patient(Edge(), 0.01).limit():
            await asyncio.Event().wait()


async def test_a_slow_call_is_not_cut_by_the_turns_limit_and_its_edge_is_kept_informed(edge: Edge) -> None:
    turn = patient(edge, 0.1)
    async with turn.limit(), turn.slow_call(10):
        await edge.enough.wait()  # 0.2 s of calls that the turn goes on
    assert edge.informed >= 6


async def test_what_was_left_of_the_turn_is_left_after_a_slow_call(edge: Edge) -> None:
    turn = patient(edge, 0.1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(10), turn.limit():
            async with turn.slow_call(60):
                await edge.enough.wait()
            await asyncio.Event().wait()


async def test_a_slow_call_has_a_limit_too(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "SETTLE_SECONDS", 0.0)
    turn = patient(edge, 0.01)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(10), turn.limit(), turn.slow_call(0.01):
            await asyncio.Event().wait()


@pytest.mark.parametrize(("since", "waits"), [(0.0, True), (0.6, False), (None, False)])
async def test_speech_that_was_just_announced_may_begin_before_the_device_is_blocked(
    edge: Edge, monkeypatch: pytest.MonkeyPatch, since: float | None, waits: bool
) -> None:
    slept: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        slept.append(seconds)
        await sleep(0)

    now = asyncio.get_running_loop().time()
    edge.begun_at = None if since is None else now - since
    turn = patient(edge, 5)
    async with turn.limit():
        monkeypatch.setattr(asyncio, "sleep", note)
        async with turn.slow_call(1):
            monkeypatch.setattr(asyncio, "sleep", sleep)
    longest = [seconds for seconds in slept if seconds != deadline.PROGRESS_SECONDS and seconds > 0]
    assert [0.3 < seconds <= 0.5 for seconds in longest] == ([True] if waits else [])


async def test_an_edge_that_cannot_be_reached_does_not_end_the_call(edge: Edge) -> None:
    edge.failure = Unavailable("redis is away")
    turn = patient(edge, 5)
    async with turn.limit(), turn.slow_call(5):
        await edge.enough.wait()
