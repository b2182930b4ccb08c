import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Literal

import numpy as np
import pytest

from fleet.adapters.speech.pcm import write_wav
from fleet.adapters.speech.tts_openai import OpenAiTts
from fleet.ground.errors import ProviderError
from tests.support.leaping import leaping
from tests.support.openai_server import Answer, OpenAiServer, refused, run_openai_server

KEY = "sk-very-secret"
LIMIT = 240.0
PCM = (np.sin(np.arange(24_000) / 8) * 9000).astype("<i2").tobytes()


def sound(
    data: bytes = PCM, size: int = 4_001, kind: str = "audio/pcm", then: Literal["end", "break", "silent"] = "end"
) -> Answer:
    return Answer([data[at : at + size] for at in range(0, len(data), size)], kind=kind, then=then)


@pytest.fixture(scope="module")
def running_server() -> Iterator[OpenAiServer]:
    with run_openai_server() as running:
        yield running


@pytest.fixture
def server(running_server: OpenAiServer) -> OpenAiServer:
    running_server.reset()
    return running_server


def make(url: str, timeout: float = LIMIT, language: str | None = None) -> OpenAiTts:
    return OpenAiTts(url, KEY, "tts-1", "alloy", language, 24_000, timeout)


@pytest.fixture
async def tts(server: OpenAiServer) -> AsyncIterator[OpenAiTts]:
    made = make(server.url)
    yield made
    await made.aclose()


async def speak(tts: OpenAiTts, text: str = "Good morning.") -> list[bytes]:
    async with asyncio.timeout(240):
        return [piece async for piece in tts.speak(text, "en")]


async def test_audio_comes_in_whole_samples(server: OpenAiServer, tts: OpenAiTts) -> None:
    server.speech(sound())
    pieces = await speak(tts)
    assert b"".join(pieces) == PCM
    assert all(len(piece) % 2 == 0 for piece in pieces)
    assert tts.sample_rate == 24_000
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.requests[0].json == {
        "input": "Good morning.",
        "model": "tts-1",
        "voice": "alloy",
        "response_format": "pcm",
        "sample_rate": 24_000,
        "stream": True,
    }


async def test_audio_comes_before_the_body_has_ended(server: OpenAiServer, tts: OpenAiTts) -> None:
    server.speech(sound(then="silent"))
    async with asyncio.timeout(240), aclosing(tts.speak("hi", "en")) as pieces:
        assert PCM.startswith(await anext(pieces))
    assert await asyncio.to_thread(server.requests[0].hung_up.wait, 240)


async def test_a_wav_file_loses_its_header_and_keeps_its_rate(server: OpenAiServer, tts: OpenAiTts) -> None:
    server.speech(sound(write_wav(PCM, 24_000), size=17), sound(write_wav(PCM, 48_000), kind="audio/wav"))
    assert b"".join(await speak(tts)) == PCM
    assert len(b"".join(await speak(tts))) == len(PCM) // 2


async def test_openai_itself_gets_no_fields_of_others() -> None:
    plain, chosen = make("https://api.openai.com/v1"), make("https://api.openai.com/v1", language="zh")
    assert (plain._extras, chosen._extras) == ({}, {"language": "zh"})
    await plain.aclose()
    await chosen.aclose()


async def test_fields_that_are_refused_are_not_sent_again(server: OpenAiServer) -> None:
    tts = make(server.url, language="zh")
    server.speech(refused(422), sound())
    assert b"".join(await speak(tts)) == PCM
    await speak(tts)
    await tts.aclose()
    sent = [set(request.json) - {"input", "model", "voice", "response_format"} for request in server.requests]
    assert sent == [{"language", "sample_rate", "stream"}, set(), set()]


async def test_a_text_that_is_refused_is_not_blamed_on_the_fields(server: OpenAiServer, tts: OpenAiTts) -> None:
    server.speech(refused(400))
    with pytest.raises(ProviderError, match=r"refused the request \(400, some_code\)$") as caught:
        await speak(tts)
    assert not caught.value.retryable
    assert len(server.requests) == 2
    server.speech(sound())
    await speak(tts)
    assert "sample_rate" in server.requests[-1].json


async def test_nothing_to_say_asks_nobody(server: OpenAiServer, tts: OpenAiTts) -> None:
    assert await speak(tts, " ") == []
    assert server.requests == []


@pytest.mark.parametrize(
    "failure",
    [refused(429), refused(500), Answer(header=False, then="break"), sound(b"", then="break"), sound(b"")],
)
async def test_a_failure_before_any_audio_is_tried_again_once(
    server: OpenAiServer, tts: OpenAiTts, failure: Answer
) -> None:
    server.speech(failure, sound())
    assert b"".join(await speak(tts)) == PCM
    server.speech(failure)
    with pytest.raises(ProviderError) as caught:
        await speak(tts)
    assert caught.value.retryable
    assert len(server.requests) == 4


async def test_a_break_after_some_audio_is_not_tried_again(server: OpenAiServer, tts: OpenAiTts) -> None:
    server.speech(sound(then="break"))
    got = []
    with pytest.raises(ProviderError, match="broke off"):
        async with asyncio.timeout(240):
            async for piece in tts.speak("hi", "en"):
                got.append(piece)  # noqa: PERF401 - what came before the error counts
    assert PCM.startswith(b"".join(got))
    assert got
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Answer([b'{"error":"no"}'], kind="application/json"), "sent application/json instead of audio"),
        (sound(b"ID3\x04" + PCM, kind="audio/mpeg"), "sent MP3 instead of PCM"),
        (sound(b"RIFF\0\0\0\0WAVE"), "sent the beginning of a WAV file"),
    ],
)
async def test_what_is_no_pcm_is_never_played(server: OpenAiServer, tts: OpenAiTts, answer: Answer, says: str) -> None:
    server.speech(answer)
    with pytest.raises(ProviderError, match=rf"^TTS http://\S+/v1 {says}$") as caught:
        await speak(tts)
    assert not caught.value.retryable
    assert len(server.requests) == 1


async def test_a_refused_key_is_told_without_key_and_text(
    server: OpenAiServer, tts: OpenAiTts, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server.speech(refused(401, message=f"{KEY} may not say Good morning."))
    with pytest.raises(ProviderError, match=r"refused the key \(401, some_code\)$") as caught:
        await speak(tts)
    assert len(server.requests) == 1
    assert not {KEY, "morning"} & set((str(caught.value) + caplog.text).split())


@pytest.mark.parametrize(
    ("answer", "heard"),
    [
        (Answer(header=False, then="silent"), b""),
        (sound(b"", then="silent"), b""),
        (sound(then="silent"), PCM),
    ],
)
async def test_silence_is_an_error_and_hangs_up(
    server: OpenAiServer, tts: OpenAiTts, answer: Answer, heard: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.speech(answer)
    leap, got = leaping(monkeypatch), bytearray()

    async def listen() -> None:
        with pytest.raises(ProviderError, match="silent for too long"):
            async for piece in tts.speak("Good morning.", "en"):
                got.extend(piece)

    async with asyncio.timeout(2 * LIMIT), asyncio.TaskGroup() as group:
        group.create_task(listen())
        await server.asked()
        while got != heard:
            await asyncio.sleep(0.01)
        leap(LIMIT + 1)
    assert await asyncio.to_thread(server.requests[0].hung_up.wait, 240)
    assert len(server.requests) == 1
