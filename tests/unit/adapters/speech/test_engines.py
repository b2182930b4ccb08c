import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

from fleet.adapters.speech.engines import VOICE_NICENESS, Engine
from fleet.adapters.speech.fair_engine import FairEngine
from fleet.ground.errors import FleetError, Overloaded, ProviderError
from tests.support.leaping import leaping

LIMIT = 240.0
"""Threads need real time, on a busy machine much of it."""


@pytest.fixture(params=[Engine, FairEngine], ids=["in order", "fair"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    made: Engine = request.param("test", threads=1, queue=1)
    yield made
    made.close()


class Gate:
    """Work that says when it has begun and ends when it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.open = threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        assert self.open.wait(LIMIT)
        return "done"

    async def began(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, LIMIT)


def failing(error: Exception) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


async def test_work_runs_in_a_thread_of_the_engine(engine: Engine) -> None:
    name = await engine.run(lambda: threading.current_thread().name, LIMIT)
    assert name.startswith("test")


async def test_work_beyond_the_queue_is_refused_and_accepted_again_later(engine: Engine) -> None:
    gate = Gate()
    async with asyncio.timeout(240), asyncio.TaskGroup() as group:
        running = group.create_task(engine.run(gate, LIMIT))
        await gate.began()
        waiting = group.create_task(engine.run(lambda: "waited", LIMIT))
        await asyncio.sleep(0)
        with pytest.raises(Overloaded, match="test"):
            await engine.run(lambda: "refused", LIMIT)
        gate.open.set()
    assert (running.result(), waiting.result()) == ("done", "waited")
    assert await engine.run(lambda: "again", LIMIT) == "again"


async def test_an_engine_has_room_until_half_of_its_places_are_taken() -> None:
    engine, gate = Engine("test", threads=1, queue=16), Gate()
    async with asyncio.timeout(240), asyncio.TaskGroup() as group:
        room = list[bool]()
        for _ in range(10):
            room.append(engine.has_room)
            group.create_task(engine.run(gate, LIMIT))
            await asyncio.sleep(0)
        gate.open.set()
    assert room == [True] * 9 + [False]
    await engine.run(lambda: None, LIMIT)
    assert engine.has_room
    engine.close()


async def test_a_failure_is_a_provider_error_without_its_text(engine: Engine) -> None:
    with pytest.raises(ProviderError, match="test: ValueError") as caught:
        await engine.run(failing(ValueError("what somebody said")), LIMIT)
    assert "somebody" not in str(caught.value)
    assert not caught.value.retryable


async def test_an_error_of_fleet_passes_through(engine: Engine) -> None:
    with pytest.raises(FleetError, match="mine"):
        await engine.run(failing(FleetError("mine")), LIMIT)


async def test_work_that_takes_too_long_is_given_up_and_its_place_stays_taken(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, leap = Gate(), leaping(monkeypatch)

    async def given_up(running: asyncio.Task[str]) -> ProviderError:
        await asyncio.sleep(0)
        leap(LIMIT + 1)
        with pytest.raises(ProviderError, match="timed out") as caught:
            await running
        return caught.value

    running = asyncio.create_task(engine.run(gate, LIMIT))
    await gate.began()
    assert (await given_up(running)).retryable
    await given_up(asyncio.create_task(engine.run(lambda: "never starts", LIMIT)))
    gate.open.set()
    assert await engine.run(lambda: "next", LIMIT) == "next"


async def test_a_cancelled_caller_frees_the_place_of_work_that_has_not_begun(engine: Engine) -> None:
    gate, begun = Gate(), threading.Event()
    async with asyncio.timeout(240), asyncio.TaskGroup() as group:
        running = group.create_task(engine.run(gate, LIMIT))
        await gate.began()
        given_up = group.create_task(engine.run(begun.set, LIMIT))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.wait({given_up})
        waiting = group.create_task(engine.run(lambda: "waited", LIMIT))
        await asyncio.sleep(0)
        gate.open.set()
    assert (running.result(), waiting.result()) == ("done", "waited")
    assert not begun.is_set()


async def test_a_caller_cancelled_while_its_work_runs_harms_nothing(engine: Engine) -> None:
    gate = Gate()
    running = asyncio.create_task(engine.run(gate, LIMIT))
    await gate.began()
    running.cancel()
    await asyncio.wait({running})
    assert running.cancelled()
    gate.open.set()
    assert await engine.run(lambda: "next", LIMIT) == "next"


async def test_a_closed_engine_refuses_and_drops_what_waits(engine: Engine) -> None:
    gate = Gate()
    running = asyncio.create_task(engine.run(gate, LIMIT))
    await gate.began()
    waiting = asyncio.create_task(engine.run(lambda: "never", LIMIT))
    await asyncio.sleep(0)
    engine.close()
    gate.open.set()
    assert await running == "done"
    with pytest.raises(ProviderError, match="closed"):
        await waiting
    with pytest.raises(ProviderError, match="closed"):
        await engine.run(lambda: "never", LIMIT)


def test_futures_tell_when_they_are_cancelled() -> None:
    """`Engine` frees a place in a done callback, which a cancelled future must call too."""
    future: Future[None] = Future()
    called: list[Future[None]] = []
    future.add_done_callback(called.append)
    future.cancel()
    assert called == [future]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a niceness of threads")
async def test_a_voice_gives_way_to_other_engines() -> None:
    def niceness() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    usual, voice = Engine("asr", 1, 1), Engine("tts", 1, 1, niceness=VOICE_NICENESS)
    try:
        own = await usual.run(niceness, 60)
        assert await voice.run(niceness, 60) == min(own + VOICE_NICENESS, 19)
    finally:
        usual.close()
        voice.close()


async def test_memory_goes_back_to_the_system_after_a_model_s_work_and_not_after_a_codec_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    returned = threading.Semaphore(0)
    monkeypatch.setattr("fleet.adapters.speech.engines.return_freed_memory", returned.release)
    codec, model = Engine("test", threads=1, queue=1), FairEngine("test", threads=1, queue=1)
    await codec.run(lambda: None, LIMIT)
    await codec.run(lambda: None, LIMIT)  # the callbacks of the first have run
    assert not returned.acquire(blocking=False)
    await model.run(lambda: None, LIMIT)
    assert await asyncio.to_thread(returned.acquire, timeout=LIMIT)
    codec.close()
    model.close()
