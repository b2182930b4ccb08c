"""Push-to-talk: recognition in a pause, presses without a word, firmware that loses wake words in an open channel."""

import asyncio

import pytest

from fleet.core.text.phrases import phrase
from fleet.roles.edge import turn_taking
from fleet.roles.edge.listening import push_to_talk, uplink
from fleet.wire import edge_messages
from tests.support.edge_stage import Device, Stage, on_stage, opus_like


@pytest.fixture(autouse=True)
def _no_accident(monkeypatch: pytest.MonkeyPatch) -> None:
    """However fast this machine is, no press is one by accident."""
    monkeypatch.setattr(push_to_talk, "ACCIDENT_SECONDS", 0.0)


FRAME = 60 * 16 * 2
"""Bytes of PCM in a frame."""


async def pressed(stage: Stage, **opened: object) -> Device:
    """Press the button of a device that is heard."""
    device = await stage.open(**opened)
    await stage.listen("manual")
    await stage.hears(device)
    return device


async def released(stage: Stage) -> None:
    await stage.send("listening_stopped")


def endings(stage: Stage) -> list[str]:
    return [event.reason for event in stage.posted if isinstance(event, edge_messages.SessionSilentEvent)]


async def test_a_press_without_a_word_gets_a_spoken_sentence_in_the_devices_language() -> None:
    async with on_stage() as stage:
        device = await pressed(stage, reported_language="zh")
        await released(stage)
        await device.packets(1)
        await stage.told_at_least("stop")
        assert stage.voice.spoken == [phrase("not_heard", "zh")]
        assert stage.told() == ["start", "sentence_start", "stop"]
        assert not stage.posted


async def test_a_press_in_which_recognition_finds_no_word_gets_it_too() -> None:
    async with on_stage() as stage:
        stage.asr.script.append("")
        device = await pressed(stage)
        device.say(silence=0)
        await stage.received(device.sequence)
        await released(stage)
        await stage.told_at_least("stop")
        assert stage.voice.spoken == [phrase("not_heard", "en")]


async def test_a_press_without_a_word_is_answered_on_the_screen_where_that_is_set() -> None:
    async with on_stage(unheard_reply="shown") as stage:
        await pressed(stage)
        await released(stage)
        await stage.told_at_least("alert")
        assert [order["message"] for order in stage.orders] == [phrase("not_heard", "en")]


async def test_a_device_whose_audio_does_not_arrive_is_answered_on_the_screen() -> None:
    async with on_stage() as stage:
        await stage.open()
        await stage.listen("manual")
        await released(stage)
        await stage.told_at_least("alert")
        assert not stage.voice.spoken


@pytest.mark.parametrize("unheard_reply", ["spoken", "shown", "off"])
async def test_a_press_by_accident_or_where_nothing_is_set_gets_nothing(
    monkeypatch: pytest.MonkeyPatch, unheard_reply: str
) -> None:
    if unheard_reply != "off":
        monkeypatch.setattr(push_to_talk, "ACCIDENT_SECONDS", 1000.0)
    async with on_stage(unheard_reply=unheard_reply) as stage:
        # The goodbye that this firmware gets tells that the press was handled.
        await pressed(stage, firmware="2.2.6")
        await released(stage)
        await stage.until(lambda: endings(stage) == ["pressed"])
        assert not stage.orders


async def test_a_press_without_a_word_does_not_disturb_the_answer_that_is_awaited() -> None:
    async with on_stage() as stage:
        device = await pressed(stage)
        device.say(silence=0)
        await stage.received(device.sequence)
        await released(stage)
        turn = (await stage.heard()).turn
        await stage.listen("manual")
        await stage.hears(device)
        await released(stage)
        await stage.speak(turn, "A")
        await stage.told_at_least("start", "stop")
        assert stage.voice.spoken == ["A"]


async def test_a_new_press_silences_the_sentence_about_the_press_before() -> None:
    async with on_stage() as stage:
        stage.voice.gate = asyncio.Event()
        device = await pressed(stage)
        await released(stage)
        await stage.until(lambda: stage.voice.spoken)
        await stage.listen("manual")
        stage.voice.gate.set()
        device.say(silence=0)
        await stage.received(device.sequence)
        await released(stage)
        turn = (await stage.heard()).turn
        await stage.speak(turn, "A")
        await stage.told_at_least("stop")
        assert stage.told() == ["stt", "start", "sentence_start", "stop"]


async def test_silence_in_auto_mode_gets_no_answer() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen("auto")
        await stage.hears(device)
        await released(stage)
        await stage.listen("auto")
        device.say()
        turn = (await stage.heard()).turn
        await stage.speak(turn, "A")
        await stage.told_at_least("stop")
        assert stage.voice.spoken == ["A"]


async def test_firmware_that_loses_wake_words_gets_a_goodbye_after_each_press() -> None:
    async with on_stage() as stage:
        device = await pressed(stage, firmware="2.2.6")
        device.say(silence=0)
        await stage.received(device.sequence)
        await released(stage)
        turn = (await stage.heard()).turn
        assert not endings(stage)
        await stage.speak(turn, "A")
        await stage.told_at_least("stop")
        await stage.until(lambda: endings(stage) == ["pressed"])
        assert stage.kinds() == ["utterance_heard", "speech_done", "session_silent"]


async def answering(stage: Stage, **opened: object) -> tuple[Device, str]:
    """Press the button, say something, and let the answer begin to be heard."""
    device = await pressed(stage, **opened)
    turn = await said(stage, device)
    stage.voice.packets_each = 200
    await stage.speak(turn, "A", "B")
    await device.packets(2)
    return device, turn


async def said(stage: Stage, device: Device) -> str:
    """Say something into a press that is held, and let go; return the turn."""
    count = len(stage.utterances())
    device.say(silence=0)
    await stage.received(device.sequence)
    await released(stage)
    return (await stage.heard(count + 1)).turn


async def test_a_press_during_an_answer_gets_no_goodbye_before_its_own_turn_is_over() -> None:
    async with on_stage() as stage:
        # `abort` and `listen start` of one press, as firmware sends them.
        device, _turn = await answering(stage, firmware="2.2.6")
        await stage.send("speech_aborted")
        await stage.listen("manual")
        turn = await said(stage, device)
        stage.voice.packets_each = 3
        await stage.speak(turn, "C")
        await stage.until(lambda: endings(stage))
        assert endings(stage) == ["pressed"]
        assert stage.kinds() == [
            "utterance_heard",
            "speech_interrupted",
            "utterance_heard",
            "speech_done",
            "session_silent",
        ]


@pytest.mark.parametrize("mode", ["auto", "manual"])
async def test_a_press_or_wake_word_that_interrupts_an_answer_gets_no_goodbye(mode: str) -> None:
    async with on_stage() as stage:
        device, _turn = await answering(stage, firmware="2.2.6")
        await stage.send("speech_aborted")
        await stage.listen(mode)
        device.say()
        await stage.received(device.sequence)
        if mode == "manual":
            await released(stage)
        await stage.heard(2)
        assert not endings(stage)


async def test_an_answer_that_is_only_silenced_gets_its_goodbye_a_little_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turn_taking, "ABORTED_SECONDS", 0.05)
    async with on_stage() as stage:
        await answering(stage, firmware="2.2.6")
        await stage.send("speech_aborted")
        await stage.until(lambda: endings(stage) == ["pressed"])


async def test_other_firmware_keeps_its_session_after_a_press() -> None:
    async with on_stage() as stage:
        device = await pressed(stage)
        device.say(silence=0)
        await stage.received(device.sequence)
        await released(stage)
        await stage.speak((await stage.heard()).turn, "A")
        await stage.until(lambda: "speech_done" in stage.kinds())
        assert not endings(stage)


async def test_a_conversation_by_wake_word_goes_on_whatever_the_firmware() -> None:
    async with on_stage() as stage:
        device = await stage.open(firmware="2.2.6")
        await stage.listen("auto")
        device.say()
        await stage.speak((await stage.heard()).turn, "A")
        await stage.until(lambda: "speech_done" in stage.kinds())
        assert not endings(stage)


async def test_what_was_said_up_to_a_pause_is_recognised_before_the_button_is_released() -> None:
    async with on_stage(pause_ms=120) as stage:
        device = await pressed(stage)
        device.say(frames=6, silence=4)
        await stage.until(lambda: stage.asr.heard)
        await released(stage)
        assert (await stage.heard()).text == "hello"
        assert len(stage.asr.heard) == 1


async def test_what_is_said_after_the_pause_is_recognised_with_the_rest() -> None:
    async with on_stage(pause_ms=120) as stage:
        stage.asr.script.extend(["first", "whole"])
        device = await pressed(stage)
        device.say(frames=6, silence=4)
        await stage.until(lambda: stage.asr.heard)
        device.send(*(opus_like(number) for number in range(11, 14)))
        await stage.received(device.sequence)
        await released(stage)
        assert (await stage.heard()).text == "whole"
        assert {1, 6, 11, 13} <= set(stage.asr.markers())


async def test_packets_after_the_release_belong_to_what_was_said_before_the_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(uplink, "GRACE_SECONDS", 2.0)
    async with on_stage(pause_ms=120) as stage:
        stage.asr.script.extend(["first", "whole"])
        device = await pressed(stage)
        device.say(frames=6, silence=4)
        await stage.until(lambda: stage.asr.heard)
        await released(stage)
        device.send(*(opus_like(number) for number in range(11, 14)))
        assert (await stage.heard()).text == "whole"
        assert {11, 12, 13} <= set(stage.asr.markers())


def push(stage: Stage, payloads: list[bytes], first: int, since: float) -> None:
    """Give packets to the session as they come from a microphone, a frame apart."""
    [session] = stage.edge._registry
    for number, payload in enumerate(payloads):
        session.parts.turn_taking.uplink.push(first + number, payload, since + number * 0.06)


NOTHING = b""
"""What stands for a datagram without a number: nothing shows that the device has sent it."""


async def test_datagrams_that_prove_nothing_open_no_press_and_do_not_lengthen_the_next() -> None:
    async with on_stage() as stage:
        device = await pressed(stage)
        await stage.speak(await said(stage, device), "A")
        await stage.told_at_least("stop")
        push(stage, [NOTHING] * 600, device.sequence, asyncio.get_running_loop().time())
        [session] = stage.edge._registry
        assert session.parts.turn_taking.uplink.gate == "held"
        await stage.listen("manual")
        await said(stage, device)
        assert len(stage.asr.heard[-1]) == 6 * FRAME


async def test_a_press_records_no_more_than_two_seconds_of_them() -> None:
    async with on_stage() as stage:
        device = await pressed(stage)
        before = len(stage.audio_input.seen)
        push(stage, [NOTHING] * 600, device.sequence, asyncio.get_running_loop().time())
        assert len(stage.audio_input.seen) - before == round(2000 / 60)
        await said(stage, device)
        assert len(stage.asr.heard[-1]) == (before + round(2000 / 60) + 6) * FRAME
