"""An edge that is told to end: answers end first, then the sessions, and nobody is left without a word."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fleet.roles.edge import app
from tests.support.edge_stage import SPEECH, Stage, on_stage, opus_like
from tests.support.virtual_time import elapse


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "NOTICE_SECONDS", 0.1)
    monkeypatch.setattr(app, "GOODBYE_SECONDS", 0.2)


@asynccontextmanager
async def draining(stage: Stage, seconds: float) -> AsyncIterator[asyncio.Task[None]]:
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        yield group.create_task(stage.edge.drain(seconds))


def dismissed(stage: Stage) -> bool:
    return "session_silent" in stage.kinds()


async def test_the_answer_that_is_awaited_and_spoken_ends_before_its_session() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        device.say()
        heard = await stage.heard()
        async with draining(stage, 60) as end:
            await elapse(0.2)
            assert not dismissed(stage)
            await stage.speak(heard.turn, "A", "B")
            await stage.until(lambda: dismissed(stage))
            assert stage.kinds().index("speech_done") < stage.kinds().index("session_silent")
            assert stage.told().count("stop") == 1
            assert not end.done()
            await stage.send("session_closed")
            await end
        assert stage.voice.spoken == ["A", "B"]
        assert "goodbye" not in stage.told()  # that is for the shard to say


async def test_a_user_who_is_speaking_is_listened_to() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        await stage.hears(device)
        device.send(*(opus_like(1, SPEECH) for _ in range(8)))
        await stage.until(lambda: [session.busy for session in stage.edge._registry] == [True])
        async with draining(stage, 60):
            await elapse(0.2)
            assert not dismissed(stage)
            device.be_silent()
            heard = await stage.heard()
            await stage.speak(heard.turn, "A")
            await stage.until(lambda: dismissed(stage))
            await stage.send("session_closed")


async def test_what_has_come_but_was_not_heard_yet_may_be_somebody_who_speaks() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        await stage.hears(device)
        stage.audio_input.late, before = True, len(stage.audio_input.seen)
        device.say()
        await stage.until(lambda: len(stage.audio_input.seen) >= before + 11)
        async with draining(stage, 60):
            await elapse(0.2)
            assert not dismissed(stage)
            stage.audio_input.catch_up()
            heard = await stage.heard()
            await stage.speak(heard.turn, "A")
            await stage.until(lambda: dismissed(stage))
            await stage.send("session_closed")


@pytest.mark.parametrize("speaks", [True, False])
async def test_an_edge_that_has_just_stood_still_first_hears_what_was_said_meanwhile(*, speaks: bool) -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        await stage.hears(device)
        stage.edge._services.stalls.beat(asyncio.get_running_loop().time() + 1.0)
        async with draining(stage, 60):
            await elapse(0.2)
            assert not dismissed(stage)
            if speaks:
                device.say()
                heard = await stage.heard()
                await stage.speak(heard.turn, "A")
            await stage.until(lambda: dismissed(stage))
            await stage.send("session_closed")
        assert ("speech_done" in stage.kinds()) is speaks


async def test_an_edge_that_stands_still_again_and_again_does_not_hear_without_an_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        await stage.hears(device)
        device.say()
        heard = await stage.heard()
        monkeypatch.setattr(stage.edge._services.stalls, "waited", lambda _: 1.0)
        async with draining(stage, 60):
            await elapse(app.HEARING_SECONDS)
            assert not dismissed(stage), "an answer is awaited"
            await stage.speak(heard.turn, "A")
            await stage.until(lambda: "speech_done" in stage.kinds())
            await elapse(app.HEARING_SECONDS - 1)
            assert not dismissed(stage), "the user may have spoken again since"
            await elapse(1.1)
            assert dismissed(stage)
            await stage.send("session_closed")


async def test_when_the_time_is_over_answers_are_cut_off_and_the_device_is_told() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        device.say()
        await stage.heard()
        async with draining(stage, 0.3):
            await stage.until(lambda: dismissed(stage))
        assert "speech_interrupted" in stage.kinds()
        assert stage.told()[-1] == "stop"
        assert stage.edge.load == 1
    assert stage.told()[-2:] == ["stop", "goodbye"]  # nobody answered for its shard


async def test_a_session_that_comes_while_it_drains_ends_at_once() -> None:
    async with on_stage() as stage:
        async with draining(stage, 60) as end:
            await stage.open()
            await stage.until(lambda: dismissed(stage))
            assert not end.done()
            await stage.send("session_closed")
        assert stage.edge.load == 0


async def test_without_time_the_sessions_are_told_at_the_end() -> None:
    async with on_stage() as stage:
        await stage.open()
        await stage.edge.drain(0)
        assert not dismissed(stage)
    assert stage.told() == ["goodbye"]


async def test_work_that_was_cancelled_before_it_began_is_closed() -> None:
    async def work() -> None:
        return

    async with on_stage() as stage:
        begun = work()
        task = stage.edge._services.tasks.start("work", begun)
        task.cancel()
        await asyncio.wait([task])
        assert inspect.getcoroutinestate(begun) == inspect.CORO_CLOSED
