"""Speech over an answer in realtime mode, on an edge with a scripted ear and recogniser."""

import asyncio
from collections import Counter

import pytest

from fleet.core.interruption import MOST_TEXTS
from fleet.core.playout import Playout
from fleet.ground.errors import ProviderError
from fleet.ground.metrics import turns as timed
from tests.support.edge_stage import QUIET, Device, Stage, on_stage, opus_like, settle
from tests.support.virtual_time import elapse
from tests.unit.roles.edge.test_turn_taking import begin_speaking


def playout(stage: Stage) -> Playout | None:
    [session] = stage.edge._registry
    speech = session.parts.turn_taking.turns.downlink.speech
    return speech.playout if speech else None


def is_held(stage: Stage) -> bool:
    playing = playout(stage)
    return playing is not None and playing.held


async def speak_over(stage: Stage, device: Device, frames: int = 3) -> None:
    """Speak over the answer, and wait until it is held."""
    device.send(*(opus_like(number) for number in range(30, 30 + frames)))
    await stage.until(lambda: is_held(stage))


async def keep_speaking(stage: Stage, device: Device) -> None:
    """Speak in real time until the answer is not held any more."""
    while is_held(stage):
        device.send(opus_like(40))
        await elapse(0.06)


def numbers(device: Device) -> list[int]:
    return [int(packet.rsplit(b":", 1)[1]) for packet in device.audio()]


class Counted:
    """The verdicts since its construction."""

    def __init__(self) -> None:
        self._before = timed.interruptions.read()

    def verdicts(self) -> Counter[str]:
        return Counter({labels[0]: count for labels, count in (timed.interruptions.read() - self._before).items()})


@pytest.mark.parametrize(("text", "verdict"), [("", "noise"), ("Mm-hmm.", "backchannel"), ("嗯", "backchannel")])
async def test_answer_goes_on_where_it_stopped_after_what_is_no_interruption(text: str, verdict: str) -> None:
    counted = Counted()
    async with on_stage() as stage:
        stage.asr.script.extend(["hello", text, text])
        device, turn = await begin_speaking(stage, "realtime")
        told = stage.told()
        await speak_over(stage, device)
        await elapse(0.05)
        sent = len(device.audio())
        await stage.until(lambda: not is_held(stage))
        assert len(device.audio()) == sent, "nothing is sent to a device while its answer is held"
        await device.packets(sent + 6)
        assert numbers(device) == list(range(len(numbers(device)))), "no packet is lost or sent twice"
        device.be_silent()
        await stage.received(14 + 3)
        assert stage.told() == told
        assert [utterance.turn for utterance in stage.utterances()] == [turn]
        assert counted.verdicts() == {verdict: 1}


@pytest.mark.parametrize("text", ["What about Rome?", "stop", "Okay, wait."])
async def test_words_interrupt_while_the_user_still_speaks_and_are_part_of_the_question(text: str) -> None:
    counted = Counted()
    async with on_stage() as stage:
        stage.asr.script.extend(["hello", text, text + " And more."])
        device, turn = await begin_speaking(stage, "realtime")
        await speak_over(stage, device)
        await keep_speaking(stage, device)
        await stage.until(lambda: "speech_interrupted" in stage.kinds())
        assert stage.told().count("stop") == 1
        device.send(opus_like(50))
        device.be_silent()
        question = await stage.heard(2)
        assert question.turn != turn
        assert question.text == text + " And more."
        assert [marker for marker in stage.asr.markers() if marker] == [30, 31, 32, 40, 50]
        assert sum(counted.verdicts().values()) == 1


async def test_voice_that_goes_on_without_a_text_in_time_interrupts() -> None:
    counted = Counted()
    async with on_stage() as stage:
        device, _ = await begin_speaking(stage, "realtime")
        stage.asr.script.append(asyncio.get_running_loop().create_future())
        await speak_over(stage, device)
        await keep_speaking(stage, device)
        await stage.until(lambda: "speech_interrupted" in stage.kinds())
        device.be_silent()
        assert (await stage.heard(2)).text == "hello"
        assert counted.verdicts() == {"voice": 1}


async def test_speech_over_an_answer_that_may_not_be_recognised_is_judged_by_its_voice() -> None:
    counted = Counted()
    async with on_stage() as stage:
        device, _ = await begin_speaking(stage, "realtime")
        [session] = stage.edge._registry
        early, now = stage.edge._services.early_work, asyncio.get_running_loop().time()
        while early.may_begin(session.opened.device, stage.asr, now + 10.0):
            """Use up what the device may ask for in the next ten seconds."""
        recognised = len(stage.asr.heard)
        await speak_over(stage, device)
        await keep_speaking(stage, device)
        assert len(stage.asr.heard) == recognised
        assert counted.verdicts() == {"voice": 1}


async def test_answer_goes_on_until_the_late_text_of_a_short_word_interrupts_it() -> None:
    counted = Counted()
    async with on_stage() as stage:
        device, _ = await begin_speaking(stage, "realtime")
        late: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        stage.asr.script.extend([late, late])
        await speak_over(stage, device)
        device.be_silent()
        await stage.until(lambda: not is_held(stage))
        assert counted.verdicts() == {"undecided": 1}
        assert "stop" not in stage.told()
        late.set_result("Stop.")
        assert (await stage.heard(2)).text == "Stop."
        assert counted.verdicts() == {"undecided": 1, "keyword": 1}
        assert stage.told()[-3:] == ["stop", "stt", "start"]


async def test_second_sound_in_one_utterance_holds_the_answer_again() -> None:
    counted = Counted()
    async with on_stage() as stage:
        stage.asr.script.extend(["hello", "Mm-hmm.", "Mm-hmm. Stop."])
        device, _ = await begin_speaking(stage, "realtime")
        await speak_over(stage, device)
        await stage.until(lambda: not is_held(stage))
        device.be_silent(1)
        await elapse(0.3)
        await speak_over(stage, device)
        await stage.until(lambda: "speech_interrupted" in stage.kinds())
        assert counted.verdicts() == {"backchannel": 1, "keyword": 1}


async def test_noise_that_goes_on_lets_the_answer_go_on_and_its_words_still_interrupt() -> None:
    counted = Counted()
    async with on_stage() as stage:
        device, _ = await begin_speaking(stage, "realtime")
        stage.asr.script.extend([""] * MOST_TEXTS)
        await speak_over(stage, device)
        await keep_speaking(stage, device)
        assert counted.verdicts() == {"noise": 1}
        stage.asr.script.clear()
        stage.asr.script.append("Louder, please.")
        device.send(*[opus_like(60)] * 10)
        await elapse(0.02)
        assert not is_held(stage), "the same voice holds an answer once"
        device.be_silent()
        assert (await stage.heard(2)).text == "Louder, please."
        assert stage.told().count("stop") == 1


async def test_failed_recognition_over_an_answer_does_not_end_it() -> None:
    async with on_stage() as stage:
        device, turn = await begin_speaking(stage, "realtime")
        stage.asr.script.extend([ProviderError("busy", retryable=False)] * 6)
        await speak_over(stage, device)
        device.be_silent()
        await stage.until(lambda: not is_held(stage))
        await stage.send("sentence_ready", turn=turn, index=2, text="C", language="en")
        await device.packets(len(device.audio()) + 5)
        assert stage.edge.counters["late_sentences"] == 0
        assert "stop" not in stage.told()


@pytest.mark.parametrize("kind", ["speech_aborted", "session_closed"])
async def test_held_answer_ends_as_any_other(kind: str) -> None:
    counted = Counted()
    async with on_stage() as stage:
        device, _ = await begin_speaking(stage, "realtime")
        stage.asr.script.extend([asyncio.get_running_loop().create_future()] * 2)
        await speak_over(stage, device)
        await stage.send(kind)
        await stage.until(lambda: "speech_interrupted" in stage.kinds())
        sent = len(device.audio())
        await elapse(1.5)
        assert len(device.audio()) == sent
        assert stage.told().count("stop") == (kind == "speech_aborted")
        assert not counted.verdicts()


async def test_held_answer_goes_on_when_the_device_stops_to_listen() -> None:
    async with on_stage() as stage:
        device, _ = await begin_speaking(stage, "realtime")
        stage.asr.script.extend([asyncio.get_running_loop().create_future()] * 2)
        await speak_over(stage, device)
        await stage.send("listening_stopped")
        assert not is_held(stage)
        await device.packets(len(device.audio()) + 5)
        assert "stop" not in stage.told()


async def test_answer_that_replaces_a_held_one_is_spoken() -> None:
    async with on_stage() as stage:
        device, _ = await begin_speaking(stage, "realtime")
        stage.asr.script.extend([asyncio.get_running_loop().create_future()] * 2)
        await speak_over(stage, device)
        stage.voice.packets_each = 3
        await stage.speak("newer", "N")
        await stage.until(lambda: "speech_done" in stage.kinds())
        assert device.audio()[-1] == b"\x58N:000002"


async def test_high_sensitivity_interrupts_with_any_voice_and_off_with_none() -> None:
    for sensitivity, stops in (("high", 1), ("off", 0)):
        async with on_stage(interruption=sensitivity) as stage:
            device, _ = await begin_speaking(stage, "realtime")
            device.send(*[opus_like(30)] * 10, *[opus_like(0, QUIET)] * 5)
            stage.asr.script.append("")
            await stage.received(14 + 11)
            await elapse(0.3)
            assert stage.told().count("stop") == stops


async def test_answer_is_not_held_in_auto_mode() -> None:
    async with on_stage() as stage:
        device, _ = await begin_speaking(stage)
        device.send(*[opus_like(30)] * 10)
        await stage.received(11 + 10)
        assert not is_held(stage)


async def test_what_was_said_until_a_pause_is_recognised_once() -> None:
    async with on_stage(pause_ms=120, endpoint_ms=600, endpoint_max_ms=1200) as stage:
        stage.asr.script.extend(["hello.", "Mm-hmm."])
        device, _ = await begin_speaking(stage, "realtime")
        heard = len(stage.asr.heard)
        await speak_over(stage, device)
        device.be_silent()
        await stage.until(lambda: not is_held(stage))
        assert len(stage.asr.heard) == heard + 1
        assert "stop" not in stage.told()


async def test_speech_over_an_answer_is_recognised_after_a_longer_pause() -> None:
    async with on_stage(pause_ms=60, endpoint_ms=600, endpoint_max_ms=1200) as stage:
        stage.asr.script.extend(["hello.", "Mm-hmm."])
        device, _ = await begin_speaking(stage, "realtime")
        heard = len(stage.asr.heard)
        await speak_over(stage, device)
        seen = len(stage.audio_input.seen)
        device.be_silent(1)
        await stage.until(lambda: len(stage.audio_input.seen) > seen)
        await settle()
        assert len(stage.asr.heard) == heard
        device.be_silent(1)
        await stage.until(lambda: len(stage.asr.heard) == heard + 1)
