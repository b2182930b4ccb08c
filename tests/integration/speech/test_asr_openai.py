import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator

import numpy as np
import pytest

from fleet.adapters.speech.asr_openai import OpenAiAsr
from fleet.adapters.speech.pcm import read_wav
from fleet.core.ports import Transcript
from fleet.ground.errors import ProviderError
from tests.support.leaping import leaping
from tests.support.openai_server import Answer, OpenAiServer, refused, run_openai_server

KEY = "sk-very-secret"
LIMIT = 240.0
PCM = (np.sin(np.arange(16_000) / 8) * 9000).astype("<i2").tobytes()


def heard(kind: str = "application/json", **fields: object) -> Answer:
    return Answer([json.dumps(fields, ensure_ascii=False).encode()], kind=kind)


@pytest.fixture(scope="module")
def running_server() -> Iterator[OpenAiServer]:
    with run_openai_server() as running:
        yield running


@pytest.fixture
def server(running_server: OpenAiServer) -> OpenAiServer:
    running_server.reset()
    return running_server


@pytest.fixture
async def asr(server: OpenAiServer) -> AsyncIterator[OpenAiAsr]:
    made = OpenAiAsr(server.url, KEY, "whisper-1", None, 16_000, LIMIT)
    yield made
    await made.aclose()


async def transcribe(asr: OpenAiAsr, pcm: bytes = PCM) -> Transcript:
    async with asyncio.timeout(240):
        return await asr.transcribe(pcm)


async def test_an_utterance_is_sent_as_a_file_and_its_text_comes_back(server: OpenAiServer, asr: OpenAiAsr) -> None:
    server.transcriptions(heard(text=" 打开灯。 "))
    assert await transcribe(asr) == Transcript("打开灯。", "")
    form = server.requests[0].form
    assert set(form) == {"file", "model", "response_format"}
    assert (form["model"], form["response_format"]) == (b"whisper-1", b"json")
    assert read_wav(form["file"]) == (PCM, 16_000)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_language_and_rate_are_sent_as_configured(server: OpenAiServer) -> None:
    server.transcriptions(heard(text="hi"))
    asr = OpenAiAsr(server.url, None, "m", "zh", 24_000, LIMIT)
    assert await transcribe(asr) == Transcript("hi", "zh")
    await asr.aclose()
    form = server.requests[0].form
    pcm, rate = read_wav(form["file"])
    assert form["language"] == b"zh"
    assert (rate, len(pcm)) == (24_000, len(PCM) * 3 // 2)


@pytest.mark.parametrize(
    ("answer", "transcript"),
    [
        (heard(text="hi", kind="text/plain"), Transcript("hi")),
        (heard(text="hi", language="ZH", duration=1.2, segments=[{"id": 0}]), Transcript("hi", "zh")),
        (heard(text="hi", language="english"), Transcript("hi")),
        (heard(text=""), Transcript("")),
    ],
)
async def test_answers_of_other_servers_are_understood(
    server: OpenAiServer, asr: OpenAiAsr, answer: Answer, transcript: Transcript
) -> None:
    server.transcriptions(answer)
    assert await transcribe(asr) == transcript


@pytest.mark.parametrize(
    "answer", [heard(error="no"), heard(text=None), Answer([b"<html>"], kind="text/html"), Answer()]
)
async def test_an_answer_without_a_text_is_an_error(server: OpenAiServer, asr: OpenAiAsr, answer: Answer) -> None:
    server.transcriptions(answer)
    with pytest.raises(ProviderError, match=r"^ASR http://\S+/v1 gave an answer without a text$"):
        await transcribe(asr)
    assert len(server.requests) == 1


async def test_an_endless_answer_is_an_error(server: OpenAiServer, asr: OpenAiAsr) -> None:
    server.transcriptions(Answer([b" " * 300_000] * 5, then="silent"))
    with pytest.raises(ProviderError, match="sent an answer that is too large"):
        await transcribe(asr)


async def test_without_audio_nobody_is_asked(server: OpenAiServer, asr: OpenAiAsr) -> None:
    assert await transcribe(asr, b"") == Transcript("")
    assert server.requests == []


@pytest.mark.parametrize(
    "failure", [refused(429), refused(502), Answer(header=False, then="break"), Answer(then="break")]
)
async def test_a_passing_failure_is_tried_again_once(server: OpenAiServer, asr: OpenAiAsr, failure: Answer) -> None:
    server.transcriptions(failure, heard(text="hi"))
    assert await transcribe(asr) == Transcript("hi")
    server.transcriptions(failure, failure, heard(text="hi"))
    with pytest.raises(ProviderError) as caught:
        await transcribe(asr)
    assert caught.value.retryable
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("status", "says"), [(401, "refused the key"), (404, "knows no such"), (413, "found the request too large")]
)
async def test_a_lasting_failure_is_told_in_a_line_without_the_key(
    server: OpenAiServer, asr: OpenAiAsr, caplog: pytest.LogCaptureFixture, status: int, says: str
) -> None:
    caplog.set_level(logging.INFO)
    server.transcriptions(refused(status, message=f"{KEY}\nis wrong"))
    with pytest.raises(
        ProviderError, match=rf"^ASR http://127.0.0.1:\d+/v1 {says}.* \({status}, some_code\)$"
    ) as caught:
        await transcribe(asr)
    assert not caught.value.retryable
    assert KEY not in str(caught.value) + caplog.text
    assert len(server.requests) == 1


@pytest.mark.parametrize("answer", [Answer(header=False, then="silent"), Answer([b'{"te'], then="silent")])
async def test_silence_is_an_error_and_hangs_up(
    server: OpenAiServer, asr: OpenAiAsr, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.transcriptions(answer)
    leap = leaping(monkeypatch)

    async def fail() -> None:
        with pytest.raises(ProviderError, match="silent for too long"):
            await asr.transcribe(PCM)

    async with asyncio.TaskGroup() as group:
        group.create_task(fail())
        await server.asked()
        leap(LIMIT + 1)
    assert await asyncio.to_thread(server.requests[0].hung_up.wait, 240)
