"""Recognition that begins in a pause, and is taken or thrown away."""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fleet.core.ports import Transcript
from fleet.core.text.phrases import Phrase
from fleet.ground.errors import ProviderError
from fleet.ground.tasks import isolate
from fleet.roles.edge.downlink_transport import DownlinkTransport
from fleet.roles.edge.early_work import EarlyWork
from fleet.roles.edge.listening import recognition
from fleet.roles.edge.listening.recognition import Recognition
from fleet.roles.edge.listening.utterance_collector import Utterance
from fleet.roles.edge.services import EdgeServices


class Asr:
    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.failing = 0
        self.failure: Exception = ProviderError("away", retryable=True)
        self.gate = asyncio.Event()
        self.gate.set()

    async def transcribe(self, pcm: bytes, language: str = "", expected: str = "") -> Transcript:
        self.asked.append(pcm)
        await self.gate.wait()
        if self.failing:
            self.failing -= 1
            raise self.failure
        return Transcript(f"heard {pcm.decode()}")


class Stage:
    def __init__(self, group: asyncio.TaskGroup) -> None:
        self.asr, self.texts, self.failures = Asr(), asyncio.Queue[str](), 0
        self._group = group
        tasks = SimpleNamespace(start=self._start)
        services = SimpleNamespace(asr=self.asr, counters=Counter(), tasks=tasks, early_work=EarlyWork())
        agent = SimpleNamespace(asr=self.asr, transcribe=self.asr.transcribe)
        opened = SimpleNamespace(device="aa:bb:cc:dd:ee:ff")
        line = SimpleNamespace(fields=nullcontext, agent=SimpleNamespace(current=agent, expected="en"), opened=opened)
        self.recognition = Recognition(cast(DownlinkTransport, line), cast(EdgeServices, services), self)

    def _start(self, what: str, work: Coroutine[None, None, None]) -> asyncio.Task[object]:
        """Start as `BackgroundTasks` does."""
        task = self._group.create_task(isolate(what, work), name=what)
        task.add_done_callback(lambda _: work.close())
        return task

    async def take_transcript(self, utterance: Utterance, transcript: Transcript) -> None:
        await self.texts.put(transcript.text)

    def fail(self, name: Phrase) -> None:
        assert name == "not_understood"
        self.texts.put_nowait("failure")


def said(name: str, voiced_ms: float) -> Utterance:
    return Utterance(name.encode(), voiced_ms, 0.0)


async def play(script: Any) -> Stage:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        stage = Stage(group)
        await script(stage)
    return stage


async def test_what_was_recognised_in_the_pause_is_taken_when_nothing_more_was_said() -> None:
    async def script(stage: Stage) -> None:
        stage.recognition.prepare(said("pause", 500))
        stage.recognition.start(said("whole", 500))
        assert await stage.texts.get() == "heard pause"

    assert (await play(script)).asr.asked == [b"pause"]


async def test_it_is_thrown_away_when_speech_went_on() -> None:
    async def script(stage: Stage) -> None:
        stage.recognition.prepare(said("pause", 500))
        stage.recognition.start(said("whole", 900))
        assert await stage.texts.get() == "heard whole"

    await play(script)


async def test_a_second_pause_replaces_the_first() -> None:
    async def script(stage: Stage) -> None:
        stage.asr.gate.clear()
        stage.recognition.prepare(said("one", 500))
        stage.recognition.prepare(said("two", 900))
        stage.asr.gate.set()
        stage.recognition.start(said("whole", 900))
        assert await stage.texts.get() == "heard two"

    await play(script)


async def test_a_failure_in_the_pause_is_tried_again_in_earnest() -> None:
    async def script(stage: Stage) -> None:
        stage.asr.failing = 1
        stage.recognition.prepare(said("pause", 500))
        stage.recognition.start(said("whole", 500))
        assert await stage.texts.get() == "heard whole"

    await play(script)


async def test_a_failure_in_earnest_is_told() -> None:
    async def script(stage: Stage) -> None:
        stage.asr.failing = 2
        stage.recognition.prepare(said("pause", 500))
        stage.recognition.start(said("whole", 500))
        assert await stage.texts.get() == "failure"

    await play(script)


@pytest.mark.parametrize("failures", [1, 2])
async def test_a_recogniser_that_crashes_is_asked_again_and_then_apologised_for(failures: int) -> None:
    async def script(stage: Stage) -> None:
        stage.asr.failing, stage.asr.failure = failures, UnicodeEncodeError("ascii", "忙", 0, 1, "no ASCII")
        stage.recognition.prepare(said("pause", 500))
        await asyncio.sleep(0)
        stage.recognition.start(said("whole", 500))
        assert await stage.texts.get() == ("heard whole" if failures == 1 else "failure")

    await play(script)


async def test_the_wait_for_what_was_recognised_in_the_pause_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(stage: Stage) -> None:
        stage.asr.gate.clear()
        stage.recognition.prepare(said("pause", 500))
        await asyncio.sleep(0)
        monkeypatch.setattr(recognition, "LONGEST_SECONDS", 0.0)
        stage.recognition.start(said("whole", 500))
        assert await stage.texts.get() == "failure"

    await play(script)


async def test_cancelling_leaves_nothing_running() -> None:
    async def script(stage: Stage) -> None:
        stage.asr.gate.clear()
        stage.recognition.prepare(said("pause", 500))
        await asyncio.sleep(0)
        stage.recognition.start(said("whole", 500))
        await asyncio.sleep(0)
        stage.recognition.cancel()

    assert (await play(script)).texts.empty()
