"""What every `Tts` does; run against the offline voices and against an endpoint."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing

import numpy as np
import pytest

from fleet.adapters.speech.tts_openai import OpenAiTts
from fleet.core.ports import Tts
from tests.support.offline_speech import voices
from tests.support.openai_server import Answer, OpenAiServer, run_openai_server

TONE = (np.sin(np.arange(12_000) / 10) * 6000).astype("<i2").tobytes()


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAiServer]:
    with run_openai_server() as running:
        yield running


@pytest.fixture(params=["openai", pytest.param("offline", marks=pytest.mark.speech)])
async def tts(request: pytest.FixtureRequest, server: OpenAiServer) -> AsyncIterator[Tts]:
    if request.param == "offline":
        yield voices()
        return
    server.reset()
    server.speech(Answer([TONE[:5001], TONE[5001:]], kind="audio/pcm"))
    made = OpenAiTts(server.url, None, "tts-1", "alloy", None, 24_000, 10.0)
    yield made
    await made.aclose()


async def speak(tts: Tts, text: str, language: str = "") -> list[bytes]:
    async with asyncio.timeout(600):
        return [piece async for piece in tts.speak(text, language)]


@pytest.mark.parametrize("text", ["The light is on.", "灯已经打开了。"])
async def test_a_sentence_becomes_sound(tts: Tts, text: str) -> None:
    pieces = await speak(tts, text)
    audio = np.frombuffer(b"".join(pieces), "<i2").astype(np.float64)
    assert all(len(piece) % 2 == 0 for piece in pieces)
    assert 0.4 * tts.sample_rate < len(audio) < 4 * tts.sample_rate
    assert 1500 < np.sqrt(np.mean(audio**2)) < 8000


async def test_an_iterator_that_is_closed_early_disturbs_nothing(tts: Tts) -> None:
    async with asyncio.timeout(600):
        async with aclosing(tts.speak("First this, then that, and then all the rest.", "en")) as pieces:  # type: ignore[type-var]
            await anext(pieces)
        assert await speak(tts, "The light is on.")


async def test_several_sentences_at_once_are_all_spoken(tts: Tts) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(speak(tts, "The light is on.")) for _ in range(3)]
    assert all(task.result() for task in tasks)
