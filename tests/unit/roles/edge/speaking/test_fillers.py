"""What a user hears while a model or tool takes long."""

import asyncio

import pytest

from fleet.core.packet_queue import MOST_PACKETS
from fleet.ground.errors import ProviderError
from fleet.roles.edge.speaking.fillers import FURTHER_SECONDS
from fleet.wire.edge_messages import AnswerInterruptedEvent
from tests.support.edge_stage import Device, Stage, on_stage
from tests.support.virtual_time import elapse

WAIT = 1.0
FIRST, SECOND = "One moment.", "I am still working on it."


async def ask(stage: Stage, mode: str = "auto") -> tuple[Device, str]:
    """Say something; the shard is slow."""
    device = await stage.open()
    await stage.listen(mode)
    device.say()
    return device, (await stage.heard()).turn


def heard(device: Device) -> list[str]:
    """Return what was heard, without repetitions."""
    texts = [packet[1:].rsplit(b":", 1)[0].decode() for packet in device.audio()]
    return [text for at, text in enumerate(texts) if at == 0 or texts[at - 1] != text]


async def test_user_who_waits_hears_a_phrase_before_the_answer_in_the_same_speech() -> None:
    async with on_stage() as stage:
        device, turn = await ask(stage)
        await device.packets(1)
        assert stage.voice.spoken == [FIRST]
        assert stage.told() == ["stt", "start"], "no text is shown"
        await elapse(1.0)
        await stage.speak(turn, "A", "B")
        await stage.told_at_least("stop")
        assert stage.told() == ["stt", "start", "sentence_start", "sentence_start", "stop"]
        assert heard(device) == [FIRST, "A", "B"]
        await stage.until(lambda: "speech_done" in stage.kinds())
        assert stage.kinds() == ["utterance_heard", "speech_done"]


async def test_answer_that_begins_in_time_has_no_phrase() -> None:
    async with on_stage() as stage:
        device, turn = await ask(stage)
        await elapse(WAIT - 0.1)
        await stage.speak(turn, "A", ended=False)
        await elapse(WAIT + FURTHER_SECONDS)
        assert heard(device) == ["A"]


async def test_answer_that_was_announced_and_has_no_words_yet_is_filled() -> None:
    async with on_stage() as stage:
        device, turn = await ask(stage)
        await stage.send("speech_begun", turn=turn)
        await device.packets(1)
        assert heard(device) == [FIRST]
        assert stage.told() == ["stt", "start"]


async def test_longer_wait_is_told_once_more_and_then_not_again() -> None:
    async with on_stage() as stage:
        device, _ = await ask(stage)
        await elapse(WAIT + FURTHER_SECONDS / 2)
        assert heard(device) == [FIRST]
        await elapse(4 * FURTHER_SECONDS)
        assert heard(device) == [FIRST, SECOND]


async def test_setting_says_when_even_if_it_is_long() -> None:
    async with on_stage(filler_seconds=4.0) as stage:
        device, _ = await ask(stage)
        await elapse(3.5)
        assert not heard(device)
        await elapse(1.0)
        assert heard(device) == [FIRST]


async def test_phrase_is_in_the_language_of_the_user() -> None:
    async with on_stage() as stage:
        stage.asr.language = "zh"
        device, _ = await ask(stage)
        await device.packets(1)
        assert heard(device) == ["请稍等。"]


async def test_setting_switches_it_off() -> None:
    async with on_stage(filler_seconds=0) as stage:
        device, _ = await ask(stage)
        await elapse(4 * FURTHER_SECONDS)
        assert heard(device) == []


async def test_device_that_a_slow_tool_blocks_is_sent_nothing() -> None:
    async with on_stage() as stage:
        device, turn = await ask(stage)
        await stage.send("turn_working", turn=turn)
        await elapse(WAIT + FURTHER_SECONDS)
        assert heard(device) == []
        assert stage.told() == ["stt", "start"]


async def test_silence_after_the_phrase_ends_when_a_slow_tool_blocks_the_device() -> None:
    async with on_stage() as stage:
        device, turn = await ask(stage)
        await device.packets(3)
        await elapse(1.0)
        filled = len(device.received)
        assert filled > len(device.audio()), "silence keeps the device's queue going"
        await stage.send("turn_working", turn=turn)
        await elapse(0.2)
        filled = len(device.received)
        await elapse(2 * FURTHER_SECONDS)
        assert len(device.received) == filled
        await stage.speak(turn, "A")
        await stage.told_at_least("stop")
        assert heard(device) == [FIRST, "A"]


async def test_turn_that_ends_without_words_is_ended_after_the_phrase() -> None:
    async with on_stage() as stage:
        device, turn = await ask(stage)
        await device.packets(1)
        await stage.send("speech_ended", turn=turn, index=0)
        await stage.told_at_least("stop")
        await elapse(2 * FURTHER_SECONDS)
        assert heard(device) == [FIRST]
        assert stage.told().count("start") == 1


async def test_turn_without_an_answer_has_no_phrase() -> None:
    async with on_stage() as stage:
        device, turn = await ask(stage)
        await stage.send("speech_ended", turn=turn, index=0)
        await elapse(2 * FURTHER_SECONDS)
        assert heard(device) == []


async def test_latency_is_that_of_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with on_stage() as stage:
        _, turn = await ask(stage)
        await elapse(3.0)
        await stage.speak(turn, "A")
        await stage.told_at_least("stop")
    [sent] = [record for record in caplog.records if record.message == "first packet sent"]
    assert sent.__dict__["since_end_of_speech"] >= 3.0


async def test_phrase_is_no_spoken_sentence() -> None:
    async with on_stage() as stage:
        device, turn = await ask(stage)
        await device.packets(2)
        await stage.send("speech_aborted")
        await stage.until(lambda: "speech_interrupted" in stage.kinds())
        [event] = [event for event in stage.posted if isinstance(event, AnswerInterruptedEvent)]
        assert (event.turn, event.spoken) == (turn, 0)
        await elapse(2 * FURTHER_SECONDS)
        assert heard(device) == [FIRST]


async def test_answer_goes_on_though_the_phrase_fails() -> None:
    async with on_stage() as stage:
        stage.voice.failure, stage.voice.fail_at = ProviderError("busy", retryable=True), 0
        device, turn = await ask(stage)
        await stage.until(lambda: stage.voice.spoken)
        stage.voice.failure = None
        await stage.speak(turn, "A")
        await stage.told_at_least("stop")
        assert heard(device) == ["A"]


async def test_phrase_that_does_not_end_leaves_the_answer_its_turn() -> None:
    async with on_stage() as stage:
        stage.voice.packets_each = MOST_PACKETS + 100
        device, turn = await ask(stage)
        await device.packets(1)
        [session] = stage.edge._registry
        speech = session.parts.turn_taking.turns.downlink.speech
        assert speech and MOST_PACKETS - 10 < len(speech.playout.queue) <= MOST_PACKETS
        stage.voice.packets_each = 3
        await stage.speak(turn, "A")
        await stage.told_at_least("sentence_start", "stop")
        assert heard(device) == [FIRST, "A"]


async def test_phrase_whose_audio_comes_after_the_text_is_not_spoken() -> None:
    async with on_stage() as stage:
        stage.voice.gate = asyncio.Event()
        device, turn = await ask(stage)
        await stage.until(lambda: stage.voice.spoken)
        await stage.speak(turn, "A")
        stage.voice.gate.set()
        await stage.told_at_least("stop")
        assert heard(device) == ["A"]


@pytest.mark.parametrize("mode", ["auto", "realtime"])
async def test_answer_of_another_worker_is_spoken_once_after_the_phrase(mode: str) -> None:
    async with on_stage() as stage:
        device, turn = await ask(stage, mode)
        await device.packets(1)
        for _ in range(2):
            await stage.speak(turn, "A", "B")
        await stage.told_at_least("stop")
        assert heard(device) == [FIRST, "A", "B"]
