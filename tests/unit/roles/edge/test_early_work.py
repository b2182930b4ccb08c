"""What a device's pauses may cost."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fleet.core.ports import Transcript
from fleet.ground.metrics import turns
from fleet.roles.edge.agents import EdgeAgent
from fleet.roles.edge.early_work import HEAD_STARTS, LONGEST_BYTES, MOST, RATE, EarlyWork
from tests.support.edge_stage import PROOF, QUIET, Device, ScriptedAsr, Stage, on_stage, opus_like, settle
from tests.support.socket_forms import socket_form

__all__ = ["socket_form"]

WAITS: dict[str, Any] = {"pause_ms": 60, "endpoint_ms": 200, "endpoint_max_ms": 240}
PAUSES = 24
FRAME_BYTES = 1920


@dataclass
class Recogniser:
    has_room: bool = True

    async def transcribe(self, pcm: bytes, language: str = "", expected: str = "") -> Transcript:
        return Transcript("")

    async def aclose(self) -> None:
        """Nothing is open."""


def test_a_device_has_a_burst_and_then_one_a_second_and_takes_nothing_from_another() -> None:
    work, before = EarlyWork(), turns.early_work_skipped.read()
    begun = [work.may_begin("a", Recogniser(), 0.0) for _ in range(RATE.burst + 3)]
    assert begun == [True] * RATE.burst + [False] * 3
    assert work.may_begin("b", Recogniser(), 0.0)
    assert [work.may_begin("a", Recogniser(), now) for now in (0.9, 1.0, 1.1, 2.0)] == [False, True, False, True]
    assert turns.early_work_skipped.read() - before == Counter({("too_often",): 5})


def test_a_pause_in_a_long_utterance_costs_as_much_as_several() -> None:
    work = EarlyWork()
    begun = [work.may_begin("a", Recogniser(), now, 60 * LONGEST_BYTES) for now in (0.0, 3.9, 4.0, 7.9)]
    assert begun == [True, False, True, False]


async def test_few_utterances_that_may_go_on_are_recognised_at_once() -> None:
    class Endpoint(Recogniser):
        async def transcribe(self, pcm: bytes, language: str = "", expected: str = "") -> Transcript:
            await asyncio.get_running_loop().create_future()
            return Transcript("")

    work, agent = EarlyWork(), cast(EdgeAgent, SimpleNamespace(asr=Endpoint(), transcribe=Endpoint().transcribe))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work.recognise(agent, b"")) for _ in range(MOST)]
        await asyncio.sleep(0)
        assert await work.recognise(agent, b"") is None
        assert not work.may_begin("a", agent.asr, 0.0)
        tasks[0].cancel()
        await asyncio.wait(tasks[:1])
        assert work.may_begin("a", agent.asr, 0.0)
        for task in tasks:
            task.cancel()


def test_few_answers_are_prepared_for_a_device_that_ends_no_utterance() -> None:
    work = EarlyWork()
    assert [work.may_prepare("a", 0.0) for _ in range(HEAD_STARTS.burst + 2)] == [True] * HEAD_STARTS.burst + [
        False
    ] * 2
    assert work.may_prepare("b", 0.0)
    assert not work.may_prepare("a", 3.0)
    assert work.may_prepare("a", 3.5)


def test_a_busy_recogniser_costs_the_device_nothing() -> None:
    work, before = EarlyWork(), turns.early_work_skipped.read()
    assert not any(work.may_begin("a", Recogniser(has_room=False), 0.0) for _ in range(9))
    assert [work.may_begin("a", Recogniser(), 0.0) for _ in range(RATE.burst)] == [True] * RATE.burst
    assert turns.early_work_skipped.read() - before == Counter({("recogniser_busy",): 9})


async def hear(stage: Stage, device: Device, *packets: bytes) -> None:
    """Send packets, and let the edge do what follows from them."""
    seen = len(stage.audio_input.seen)
    device.send(*packets)
    await stage.until(lambda: len(stage.audio_input.seen) >= seen + len(packets))
    await settle()


async def listen(stage: Stage, mode: str) -> Device:
    device = await stage.open()
    await stage.listen(mode)
    await hear(stage, device, *[opus_like(0, QUIET)] * PROOF)
    return device


@pytest.mark.parametrize("mode", ["auto", "manual"])
async def test_a_device_that_pauses_without_end_costs_a_burst_and_is_understood(mode: str) -> None:
    async with on_stage(**WAITS) as stage:
        clock, before = asyncio.get_running_loop().time, turns.early_work_skipped.read()
        device, began = await listen(stage, mode), clock()
        await hear(stage, device, opus_like(1), opus_like(2))
        for number in range(PAUSES):
            await hear(stage, device, opus_like(0, QUIET))
            await hear(stage, device, opus_like(3 + number))
        assert clock() - began < 1.0
        assert len(stage.asr.heard) == RATE.burst
        assert stage.turn_detector.judged == (RATE.burst if mode == "auto" else 0)
        assert turns.early_work_skipped.read() - before == Counter({("too_often",): PAUSES - RATE.burst})
        device.be_silent(4)
        if mode == "manual":
            await stage.send("listening_stopped")
        await stage.heard()
        assert [one for one in stage.asr.markers() if one] == [*range(1, 3 + PAUSES)]


async def test_a_recogniser_whose_last_place_went_to_another_device_leaves_the_pause_to_the_longest_silence() -> None:
    room = [True, False]

    class Crowded(ScriptedAsr):
        @property
        def has_room(self) -> bool:
            return room.pop(0)

    asr = Crowded()
    async with on_stage(asr=asr, **WAITS | {"endpoint_max_ms": 1200}) as stage:
        device = await listen(stage, "auto")
        await hear(stage, device, *(opus_like(1 + number) for number in range(6)), *[opus_like(0, QUIET)] * 19)
        assert not room
        assert not asr.heard
        await hear(stage, device, opus_like(0, QUIET))
        await stage.heard()
        assert len(asr.heard) == 1


async def test_of_a_long_utterance_a_pause_looks_at_the_end_and_the_whole_is_understood() -> None:
    async with on_stage(**WAITS) as stage:
        stage.asr.script.extend(["Turn on the light.", "Once upon a time. Turn on the light."])
        await stage.open()
        await stage.listen()
        frames = LONGEST_BYTES // FRAME_BYTES + 30
        speak(stage, *(opus_like(1 + number % 200) for number in range(frames)), *[opus_like(0, QUIET)] * 2)
        heard = await stage.heard()
        assert [len(pcm) >= frames * FRAME_BYTES for pcm in stage.asr.heard] == [False, True]
        assert len(stage.asr.heard[0]) == LONGEST_BYTES
        assert heard.text == "Once upon a time. Turn on the light."


async def test_no_answer_to_the_end_of_a_long_utterance_is_prepared() -> None:
    async with on_stage(**WAITS | {"endpoint_max_ms": 1200}) as stage:
        stage.turn_detector.probability = 0.2
        stage.asr.script.append("Turn on the light.")
        await stage.open()
        await stage.listen()
        frames = LONGEST_BYTES // FRAME_BYTES + 30
        speak(stage, *(opus_like(1 + number % 200) for number in range(frames)), *[opus_like(0, QUIET)])
        await stage.until(lambda: stage.turn_detector.judged)
        for _ in range(19):
            await settle()
            speak(stage, opus_like(0, QUIET))
        await stage.heard()
        assert stage.kinds() == ["utterance_heard"]


def speak(stage: Stage, *packets: bytes) -> None:
    """Let the edge hear more than a device may send at once."""
    (session,) = stage.edge._registry
    period = session.parts.turn_taking.uplink.period
    assert period
    for packet in packets:
        period.feed(packet)
