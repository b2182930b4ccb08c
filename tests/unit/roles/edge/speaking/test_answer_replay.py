"""An answer that a device missed, because its MQTT connection was away when speech was announced."""

import asyncio

import pytest

from fleet.core.text.phrases import phrase
from tests.support.edge_stage import Device, Stage, on_stage
from tests.support.virtual_time import VirtualTimeLoop

ANSWER = ["start", "sentence_start", "stop"]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent after speech was announced counts from the first packet."""
    monkeypatch.setattr("fleet.roles.edge.speaking.answer_replay.TAKEN_SECONDS", 0.0)


async def speak_to_a_listener(stage: Stage, mode: str = "auto", frames: int = 8, **rest: object) -> Device:
    """Answer a device that goes on sending what it hears; return it when the answer has stopped."""
    device = await stage.open(**rest)
    await stage.listen(mode)
    device.say()
    turn = (await stage.heard()).turn
    stage.voice.packets_each = 20
    await stage.speak(turn, "A")
    await stage.told_at_least("start")
    device.be_silent(frames)
    await stage.told_at_least(*ANSWER)
    return device


async def test_it_is_spoken_again_when_the_device_is_back() -> None:
    async with on_stage() as stage:
        device = await speak_to_a_listener(stage)
        heard = len(device.audio())
        await stage.send("device_returned")
        await stage.told_at_least(*ANSWER, *ANSWER)
        assert len(device.audio()) == 2 * heard
        assert stage.kinds().count("speech_done") == 1


async def test_it_is_spoken_again_only_once() -> None:
    async with on_stage() as stage:
        await speak_to_a_listener(stage)
        await stage.send("device_returned")
        await stage.told_at_least(*ANSWER, *ANSWER)
        await stage.send("device_returned")
        await stage.told_at_least(*ANSWER, *ANSWER, "stop")
        assert stage.told().count("start") == 2


async def test_a_repeated_answer_that_is_missed_too_is_spoken_again() -> None:
    async with on_stage() as stage:
        device = await speak_to_a_listener(stage)
        for times in (2, 3):
            await stage.send("device_returned")
            await stage.told_at_least(*ANSWER * (times - 1), "start")
            device.be_silent(8)
            await stage.told_at_least(*ANSWER * times)
        assert stage.voice.spoken == ["A"] * 3


async def test_a_device_that_came_back_meanwhile_hears_it_at_its_end() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        device.say()
        turn = (await stage.heard()).turn
        stage.voice.packets_each = 20
        await stage.speak(turn, "A", ended=False)
        await stage.told_at_least("start")
        device.be_silent(8)
        await stage.send("device_returned")
        await stage.send("speech_ended", turn=turn, index=1)
        await stage.told_at_least(*ANSWER, *ANSWER)


@pytest.mark.parametrize(("mode", "frames", "rest"), [("auto", 3, {}), ("realtime", 8, {}), ("auto", 8, {"aec": True})])
async def test_an_answer_that_the_device_took_is_not_repeated(mode: str, frames: int, rest: dict[str, object]) -> None:
    async with on_stage() as stage:
        await speak_to_a_listener(stage, mode, frames, **rest)
        await stage.send("device_returned")
        await stage.told_at_least(*ANSWER, "stop")
        assert stage.told().count("start") == 1


async def test_nothing_is_repeated_once_the_user_has_said_something_else() -> None:
    async with on_stage() as stage:
        device = await speak_to_a_listener(stage)
        device.say(first=30)
        turn = (await stage.heard(2)).turn
        await stage.send("device_returned")
        await stage.speak(turn, "B")
        await stage.told_at_least(*ANSWER, *ANSWER)
        assert stage.voice.spoken == ["A", "B"]


async def test_speech_waits_for_the_broker() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        device.say()
        turn = (await stage.heard()).turn
        stage.offline = True
        await stage.speak(turn, "A")
        await stage.until(lambda: stage.voice.spoken)
        assert not device.audio()
        stage.offline = False
        stage.pass_time(1)
        await stage.told_at_least(*ANSWER)
        assert len(device.audio()) == stage.voice.packets_each


async def test_a_listener_of_an_edge_that_stood_still_hears_an_apology() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        await stage.hears(device)
        device.be_silent(4)
        [session] = stage.edge._registry
        session.recover()
        await stage.told_at_least(*ANSWER)
        assert stage.voice.spoken == [phrase("interrupted", "en")]


async def test_nobody_apologises_to_a_user_who_speaks() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        device.say(silence=0)
        [session] = stage.edge._registry
        await stage.until(lambda: session.busy)
        session.recover()
        device.be_silent()
        await stage.heard()
        assert not stage.voice.spoken


async def test_an_edge_notices_that_it_stood_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleet.roles.edge.app.CHECK_SECONDS", 0.02)
    monkeypatch.setattr("fleet.roles.edge.app.STOPPED_SECONDS", 0.2)
    monkeypatch.setattr("fleet.roles.edge.app.RECOVERY_SECONDS", 0.05)
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        await stage.hears(device)
        device.be_silent(4)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop.stall(0.3)
        await stage.told_at_least("start")
        assert stage.voice.spoken == [phrase("interrupted", "en")]


async def test_a_stop_that_could_not_be_told_is_told_later() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        device.say()
        turn = (await stage.heard()).turn
        await stage.speak(turn, "A", ended=False)
        await device.packets(3)
        stage.offline = True
        await stage.send("speech_ended", turn=turn, index=1)
        await stage.until(lambda: "speech_done" in stage.kinds())
        assert "stop" not in stage.told()
        stage.offline = False
        stage.pass_time(1)
        await stage.told_at_least(*ANSWER)
        stage.pass_time(2)
        assert stage.told().count("stop") == 1
