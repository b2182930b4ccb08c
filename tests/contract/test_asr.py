"""What every `Asr` does; run against the offline engine and against an endpoint."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator

import numpy as np
import pytest

from fleet.adapters.speech.asr_openai import OpenAiAsr
from fleet.core.ports import ASR_RATE, Asr, Transcript
from tests.support.offline_speech import whisper
from tests.support.openai_server import Answer, OpenAiServer, run_openai_server
from tests.support.recordings import recordings


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAiServer]:
    with run_openai_server() as running:
        yield running


@pytest.fixture(params=["openai", pytest.param("whisper", marks=pytest.mark.speech)])
async def asr(request: pytest.FixtureRequest, server: OpenAiServer) -> AsyncIterator[Asr]:
    if request.param == "whisper":
        yield whisper()
        return
    server.reset()
    server.transcriptions(Answer([json.dumps({"text": "Turn up the volume."}).encode()]))
    made = OpenAiAsr(server.url, None, "whisper-1", None, 16_000, 10.0)
    yield made
    await made.aclose()


async def test_an_utterance_becomes_text(asr: Asr) -> None:
    async with asyncio.timeout(600):
        heard = await asr.transcribe(recordings("en")[9].pcm())
    assert heard.text == "Turn up the volume."


async def test_no_audio_is_no_text(asr: Asr) -> None:
    async with asyncio.timeout(600):
        assert (await asr.transcribe(b"")).text == ""


async def test_several_utterances_at_once_are_all_answered(asr: Asr) -> None:
    pcm = recordings("en")[9].pcm()
    async with asyncio.timeout(600), asyncio.TaskGroup() as group:
        tasks = [group.create_task(asr.transcribe(pcm)) for _ in range(3)]
    assert {task.result().text for task in tasks} == {"Turn up the volume."}


async def test_a_cancelled_utterance_disturbs_no_other(asr: Asr) -> None:
    pcm = recordings("en")[9].pcm()
    async with asyncio.timeout(600):
        given_up = asyncio.create_task(asr.transcribe(pcm))
        await asyncio.sleep(0)
        given_up.cancel()
        assert (await asr.transcribe(pcm)).text == "Turn up the volume."
    assert given_up.cancelled()


@pytest.mark.speech
@pytest.mark.parametrize("noise", ["silence", "hiss", "loud hiss", "tone", "click"])
async def test_noise_is_no_text(noise: str) -> None:
    time, random = np.arange(2 * ASR_RATE), np.random.default_rng(1)
    sounds = {
        "silence": np.zeros(len(time)),
        "hiss": random.normal(0, 30, len(time)),
        "loud hiss": random.normal(0, 2000, len(time)),
        "tone": np.sin(time / 5) * 3000,
        "click": np.where(time == ASR_RATE, 20_000, 0),
    }
    async with asyncio.timeout(600):
        assert await whisper().transcribe(sounds[noise].astype("<i2").tobytes()) == Transcript("")
