"""Ends of utterances on an edge that judges pauses: early, late, withdrawn, joined."""

import asyncio
from typing import Any

from fleet.wire.edge_messages import UtteranceTentativeEvent
from tests.support.edge_stage import Device, Stage, on_stage, opus_like, settle

WAITS: dict[str, Any] = {"pause_ms": 120, "endpoint_ms": 600, "endpoint_max_ms": 1200}
MIDDLE, LONGEST = 10, 20
"""Frames of 60 ms."""


async def begin(stage: Stage, mode: str = "auto") -> Device:
    device = await stage.open()
    await stage.listen(mode)
    return device


async def prepare(stage: Stage) -> Device:
    """Say a command after which the sound does not decide; return when an answer is prepared."""
    stage.turn_detector.probability = 0.95
    stage.asr.script.insert(0, "Turn on the light.")
    device = await begin(stage)
    await say(stage, device)
    await stage.until(lambda: tentative(stage))
    return device


async def say(stage: Stage, device: Device, first: int = 1, frames: int = 6) -> None:
    """Speak until a pause is judged."""
    judged = stage.turn_detector.judged
    device.send(*(opus_like(first + number) for number in range(frames)))
    await pause(stage, device, 2)
    await stage.until(lambda: stage.turn_detector.judged > judged)
    await settle()


async def pause(stage: Stage, device: Device, frames: int) -> None:
    """Be silent for so many frames, and let the edge hear them."""
    heard = len(stage.audio_input.seen)
    device.be_silent(frames)
    await stage.until(lambda: len(stage.audio_input.seen) >= heard + frames)
    await settle()


def tentative(stage: Stage) -> list[UtteranceTentativeEvent]:
    return [event for event in stage.posted if isinstance(event, UtteranceTentativeEvent)]


async def test_an_utterance_that_sounds_and_reads_finished_ends_at_once() -> None:
    async with on_stage(**WAITS) as stage:
        stage.asr.script.append("Turn on the light.")
        device = await begin(stage)
        await say(stage, device)
        assert (await stage.heard()).text == "Turn on the light."
        assert stage.told() == ["stt", "start"]
        assert stage.kinds() == ["utterance_heard"]
        assert len(stage.asr.heard) == 1


async def test_an_utterance_of_which_the_sound_does_not_decide_waits_for_the_middle() -> None:
    async with on_stage(**WAITS) as stage:
        device = await prepare(stage)
        await pause(stage, device, MIDDLE - 3)
        assert not stage.told()
        await pause(stage, device, 1)
        assert (await stage.heard()).turn == tentative(stage)[0].turn


async def test_an_unfinished_utterance_waits_longest() -> None:
    async with on_stage(**WAITS) as stage:
        stage.turn_detector.probability = 0.2
        stage.asr.script.append("Set the volume to")
        device = await begin(stage)
        await say(stage, device)
        await pause(stage, device, LONGEST - 3)
        assert not stage.told()
        await pause(stage, device, 1)
        await stage.heard()


async def test_voice_before_the_commit_withdraws_and_the_whole_is_recognised() -> None:
    async with on_stage(**WAITS) as stage:
        stage.asr.script.append("Turn on the light in the kitchen.")
        device = await prepare(stage)
        stage.turn_detector.probability = 0.99
        await say(stage, device, first=20)
        await pause(stage, device, 4)  # the waits have grown
        heard = await stage.heard()
        assert heard.text == "Turn on the light in the kitchen."
        assert stage.asr.markers()[:7] == [1, 2, 3, 4, 5, 6, 0]
        assert {*range(20, 26)} < {*stage.asr.markers()}
        before, prepared = tentative(stage)
        assert stage.kinds() == ["utterance_tentative", "utterance_withdrawn", "utterance_tentative", "utterance_heard"]
        assert heard.turn == prepared.turn != before.turn
        assert stage.told() == ["stt", "start"]


async def test_nothing_of_a_prepared_answer_is_told_before_the_commit_and_its_sentence_is_synthesised_once() -> None:
    async with on_stage(**WAITS) as stage:
        device = await prepare(stage)
        turn = tentative(stage)[0].turn
        await stage.send("sentence_prepared", turn=turn, text="A", language="en")
        await stage.until(lambda: stage.voice.spoken == ["A"])
        assert not stage.told()
        await pause(stage, device, MIDDLE)
        await stage.heard()
        await stage.speak(turn, "A", "B")
        await stage.told_at_least("start", "stop")
        assert stage.voice.spoken == ["A", "B"]
        assert [packet[1:2] for packet in device.audio()] == [b"A"] * 3 + [b"B"] * 3


async def test_a_prepared_sentence_that_the_answer_does_not_have_is_not_heard() -> None:
    async with on_stage(**WAITS) as stage:
        device = await prepare(stage)
        turn = tentative(stage)[0].turn
        await stage.send("sentence_prepared", turn=turn, text="X", language="en")
        await pause(stage, device, MIDDLE)
        await stage.heard()
        await stage.speak(turn, "A")
        await stage.told_at_least("stop")
        assert [packet[1:2] for packet in device.audio()] == [b"A"] * 3


async def test_a_filler_is_no_turn_and_belongs_to_what_follows() -> None:
    async with on_stage(**WAITS) as stage:
        stage.turn_detector.probability = 0.9
        stage.asr.script.extend(["Uh.", "Uh, turn on the light."])
        device = await begin(stage)
        await say(stage, device)
        await pause(stage, device, MIDDLE + 4)
        assert not stage.kinds()
        stage.turn_detector.probability = 0.99
        await say(stage, device, first=20)
        assert (await stage.heard()).text == "Uh, turn on the light."
        assert stage.asr.markers()[:6] == [1, 2, 3, 4, 5, 6]


async def test_a_slow_recogniser_keeps_the_microphone_open_and_voice_still_joins() -> None:
    async with on_stage(**WAITS) as stage:
        gate: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        stage.asr.script.extend([gate, "Turn on the light in the kitchen."])
        device = await begin(stage)
        await say(stage, device)
        await pause(stage, device, LONGEST + 4)
        assert not stage.told()
        await say(stage, device, first=20)
        assert (await stage.heard()).text == "Turn on the light in the kitchen."
        gate.cancel()


async def test_voice_ends_the_recognition_that_a_pause_began() -> None:
    async with on_stage(**WAITS) as stage:
        gate: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        stage.asr.script.append(gate)
        device = await begin(stage)
        await say(stage, device)
        heard = len(stage.audio_input.seen)
        device.send(opus_like(20))
        await stage.until(lambda: len(stage.audio_input.seen) > heard)
        await settle()
        assert gate.cancelled()


async def test_in_realtime_mode_voice_right_after_the_commit_is_joined() -> None:
    async with on_stage(**WAITS) as stage:
        stage.asr.script.extend(["Turn on the light.", "Turn on the light in the kitchen."])
        device = await begin(stage, "realtime")
        await say(stage, device)
        first = await stage.heard()
        await stage.told_at_least("stt", "start")
        await say(stage, device, first=20)
        await pause(stage, device, 4)
        second = await stage.heard(2)
        assert second.text == "Turn on the light in the kitchen."
        assert stage.asr.markers()[:6] == [1, 2, 3, 4, 5, 6]
        assert stage.told() == ["stt", "start", "stop", "stt", "start"]
        assert stage.kinds() == ["utterance_heard", "utterance_withdrawn", "utterance_tentative", "utterance_heard"]
        withdrawn = [event for event in stage.posted if event.kind == "utterance_withdrawn"]
        assert [(event.turn, event.spoken) for event in withdrawn] == [(first.turn, 0)]


async def test_a_recogniser_that_writes_no_marks_is_waited_for_only_twice() -> None:
    async with on_stage(**WAITS) as stage:
        stage.asr.script.extend(["turn on the light"] * 6)
        device = await begin(stage)
        for number in range(2):
            await say(stage, device, first=1 + 20 * number)
            await pause(stage, device, LONGEST)
            turn = (await stage.heard(number + 1)).turn
            await stage.send("speech_ended", turn=turn, index=0)
            await stage.told_at_least(*["start", "stop"] * (number + 1))
            await stage.listen()
        await say(stage, device, first=60)
        await stage.heard(3)


async def test_nothing_is_prepared_for_speech_over_an_answer() -> None:
    async with on_stage(**WAITS) as stage:
        stage.asr.script.extend(["Tell me a story.", *["Mm-hmm."] * 4])
        device = await begin(stage, "realtime")
        await say(stage, device)
        first = await stage.heard()
        await stage.speak(first.turn, *["A long sentence."] * 3, ended=False)
        stage.turn_detector.probability = 0.95
        await pause(stage, device, LONGEST)
        await say(stage, device, first=20, frames=3)
        await pause(stage, device, MIDDLE + 4)
        assert stage.kinds() == ["utterance_heard"]


async def test_abort_withdraws_what_is_prepared() -> None:
    async with on_stage(**WAITS) as stage:
        await prepare(stage)
        await stage.send("speech_aborted")
        await stage.until(lambda: stage.kinds() == ["utterance_tentative", "utterance_withdrawn"])


async def test_push_to_talk_judges_no_pause() -> None:
    async with on_stage(**WAITS) as stage:
        stage.asr.script.append("Turn on the light.")
        device = await begin(stage, "manual")
        device.send(*(opus_like(number) for number in range(1, 7)))
        await pause(stage, device, LONGEST + 4)
        assert stage.turn_detector.judged == 0
        assert not stage.told()
        await stage.send("listening_stopped")
        assert (await stage.heard()).text == "Turn on the light."
