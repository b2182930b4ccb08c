"""A press in the midst of an answer without `abort`: py-xiaozhi's, and firmware's that crossed with `tts start`."""

import pytest

from fleet.core.text.phrases import phrase
from fleet.roles.edge import manual_interruption
from fleet.roles.edge.session import EdgeSession
from tests.support.edge_stage import Device, Stage, on_stage, opus_like


async def answering(stage: Stage, ago: float = 5.0, **opened: object) -> Device:
    """Have a press answered by a long speech that was announced so many seconds ago."""
    device = await stage.open(**opened)
    await stage.listen("manual")
    await stage.hears(device)
    turn = await say(stage, device)
    stage.voice.packets_each = 200
    await stage.speak(turn, "A", "B")
    await device.packets(2)
    speech = session(stage).parts.turn_taking.turns.downlink.speech
    assert speech
    speech.begun_at -= ago
    return device


def session(stage: Stage) -> EdgeSession:
    [one] = stage.edge._registry
    return one


async def say(stage: Stage, device: Device, first: int = 1, frames: int = 6) -> str:
    """Say something into a press, and let go; return the turn."""
    count = len(stage.utterances())
    device.say(frames=frames, first=first, silence=0)
    await stage.received(device.sequence)
    await stage.send("listening_stopped")
    return (await stage.heard(count + 1)).turn


@pytest.mark.requirement("XZ-033")
async def test_it_silences_the_answer_without_a_stop_and_is_answered() -> None:
    async with on_stage() as stage:
        device = await answering(stage)
        await stage.listen("manual")
        await stage.until(lambda: "speech_interrupted" in stage.kinds())
        sent = session(stage).parts.transport.sent
        turn = await say(stage, device, first=20)
        stage.voice.packets_each = 2
        await stage.speak(turn, "C")
        await stage.told_at_least("stop")
        # py-xiaozhi switches its microphone off on `tts stop`.
        assert stage.told() == ["stt", "start", "sentence_start", "stt", "start", "sentence_start", "stop"]
        assert stage.voice.spoken[-1] == "C"
        assert session(stage).parts.transport.sent - sent <= 6
        assert {20, 25} <= set(stage.asr.markers())


async def test_shortly_after_the_announcement_the_audio_tells_and_none_of_it_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fleet.roles.edge.speaking.answer_replay.TAKEN_SECONDS", 0.0)
    async with on_stage() as stage:
        device = await answering(stage, ago=0.0)
        monkeypatch.setattr(manual_interruption, "CROSSING_SECONDS", 1000.0)
        await stage.listen("manual")
        await say(stage, device, first=20, frames=12)
        assert "stop" not in stage.told()
        assert set(range(20, 32)) <= set(stage.asr.markers())
        assert "speech_interrupted" in stage.kinds()


async def test_a_press_that_crossed_the_announcement_leaves_the_answer_alone() -> None:
    async with on_stage() as stage:
        stage.voice.packets_each = 3
        device = await stage.open(firmware="2.2.6")
        await stage.listen("manual")
        await stage.hears(device)
        await stage.speak(await say(stage, device), "A")
        await stage.told_at_least("start")
        # Firmware in its speaking state sends no audio, and no `listen stop` when the button is let go.
        await stage.listen("manual")
        await stage.until(lambda: "session_silent" in stage.kinds())
        assert stage.told() == ["stt", "start", "sentence_start", "stop"]
        assert stage.kinds() == ["utterance_heard", "speech_done", "session_silent"]


async def test_a_device_that_speaks_in_silence_after_its_press_is_freed_and_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(manual_interruption, "MICROPHONE_OFF_SECONDS", 0.0)
    async with on_stage() as stage:
        await answering(stage)
        stage.voice.packets_each = 2
        await stage.listen("manual")
        stage.pass_time(1.0)
        await stage.told_at_least("start", "stop", "start", "stop")
        assert stage.told() == ["stt", "start", "sentence_start", "stop", "start", "sentence_start", "stop"]
        assert stage.voice.spoken[-1] == phrase("not_heard", "en")


async def test_an_apology_into_a_press_without_sound_is_not_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manual_interruption, "MICROPHONE_OFF_SECONDS", 0.0)
    async with on_stage() as stage:
        device = await answering(stage)
        stage.voice.packets_each = 20
        await stage.listen("manual")
        session(stage).recover()
        sorry = phrase("interrupted", "en").encode()
        await stage.until(lambda: sum(sorry in packet for packet in device.audio()) >= 2)
        stage.pass_time(1.0)
        assert stage.told()[-2:] == ["start", "sentence_start"]
        await stage.told_at_least("start", "sentence_start", "start", "sentence_start", "stop")
        assert sum(sorry in packet for packet in device.audio()) == 20


async def test_a_press_that_is_heard_is_never_told_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    async with on_stage() as stage:
        device = await answering(stage)
        await stage.listen("manual")
        device.send(opus_like(20))
        await stage.received(device.sequence)
        stage.pass_time(manual_interruption.MICROPHONE_OFF_SECONDS - 1.0)
        await stage.send("listening_stopped")
        await stage.heard(2)
        monkeypatch.setattr(manual_interruption, "MICROPHONE_OFF_SECONDS", 0.0)
        stage.pass_time(1.0)
        assert "stop" not in stage.told()


async def test_after_an_abort_it_is_a_press_like_any_other() -> None:
    async with on_stage() as stage:
        device = await answering(stage)
        await stage.send("speech_aborted")
        await stage.listen("manual")
        await say(stage, device, first=20)
        assert stage.told().count("stop") == 1
