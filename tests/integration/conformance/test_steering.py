"""The scripted models over real sockets, asked by the adapters that fleet itself uses."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any

import httpx2
import pytest
from pydantic import JsonValue

from fleet.adapters.llm.llm_openai import OpenAiLlm
from fleet.adapters.speech.asr_openai import OpenAiAsr
from fleet.adapters.speech.pcm import duration, read_wav, resample, write_wav
from fleet.adapters.speech.tts_openai import OpenAiTts
from fleet.core.ports import CallsAsked, Message, TextDelta, ToolCall, ToolOffer
from fleet.ground.errors import ConfigError, Overloaded, ProviderError
from fleet.workbench.conformance.steering import server, voice
from fleet.workbench.conformance.steering.script import Round, Scene, answer, calls, long_text
from fleet.workbench.conformance.steering.server import Steering
from tests.support.leaping import leaping
from tests.support.ports import free_port

SHORT, LONG = 0.6, 100.0
VOLUME = ToolOffer("self_audio_speaker_set_volume", "Sets the volume.")

FallsSilent = Callable[[Coroutine[Any, Any, object], Callable[[], object]], Awaitable[None]]


@pytest.fixture
async def steering() -> AsyncIterator[Steering]:
    async with asyncio.timeout(240), Steering("127.0.0.1", 0) as models:
        yield models


@pytest.fixture
async def http(steering: Steering) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=steering.url, timeout=240) as client:
        yield client


@pytest.fixture
async def falls_silent(steering: Steering, monkeypatch: pytest.MonkeyPatch) -> FallsSilent:
    """Return what fails unless a model that was asked is silent for longer than LONG."""
    leap = leaping(monkeypatch)

    async def fall_silent(asking: Coroutine[Any, Any, object], asked: Callable[[], object]) -> None:
        async def fail() -> None:
            with pytest.raises(ProviderError, match="silent for too long"):
                await asking

        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            assert await steering.until(asked, 240.0)
            leap(LONG + 1)

    return fall_silent


async def transcribe(steering: Steering, pcm: bytes, *, rate: int = 16_000, timeout: float = 240.0) -> str:
    asr = OpenAiAsr(steering.url, "any key", "any model", None, rate, timeout)
    try:
        return (await asr.transcribe(pcm)).text
    finally:
        await asr.aclose()


async def think(
    steering: Steering, *messages: Message, offers: tuple[ToolOffer, ...] = (), timeout: float = 240.0
) -> tuple[str, tuple[ToolCall, ...]]:
    """Return the text and the calls of the model's next message."""
    llm = OpenAiLlm(steering.url, None, "any model", timeout)
    text = ""
    asked: tuple[ToolCall, ...] = ()
    try:
        async with aclosing(llm.stream(messages, offers)) as events:
            async for event in events:
                match event:
                    case TextDelta(piece):
                        text += piece
                    case CallsAsked(found):
                        asked = found
    finally:
        await llm.aclose()
    return text, asked


async def speak(steering: Steering, text: str, *, rate: int = 24_000, timeout: float = 240.0) -> bytes:
    tts = OpenAiTts(steering.url, None, "any model", "any voice", None, rate, timeout)
    try:
        async with aclosing(tts.speak(text, "en")) as pieces:
            return b"".join([piece async for piece in pieces])
    finally:
        await tts.aclose()


def user(mark: int, text: str = "hello") -> Message:
    return Message("user", f"scene {mark}: {text}")


def system() -> Message:
    return Message("system", "You are a voice assistant.")


async def test_a_turn_is_heard_thought_and_said_by_its_mark(steering: Steering) -> None:
    mark = steering.free_mark()
    steering.add(answer(mark, f"In scene {mark} it is noon.", transcript="what time is it"))
    said = bytes(9_600) + voice.say(mark, 1.5) + bytes(16_000)
    transcript = await transcribe(steering, said)
    assert transcript == f"scene {mark}: what time is it"
    text, asked = await think(steering, system(), Message("user", transcript))
    assert (text, asked) == (f"In scene {mark} it is noon.", ())
    audio = await speak(steering, text)
    assert [one.mark for one in voice.read(audio, 24_000)] == [mark]
    assert duration(audio, 24_000) == pytest.approx(0.06 * len(text), abs=0.01)

    heard, thought, spoken = steering.heard(mark), steering.asked(mark), steering.spoken(mark)
    assert [one.pcm for one in heard] == [said]
    assert [one.mark for one in heard[0].marks] == [mark]
    assert heard[0].seconds == duration(said, 16_000)
    assert [message["content"] for message in thought[0].messages] == ["You are a voice assistant.", transcript]
    assert [(one.text, one.aborted, one.done) for one in spoken] == [(text, False, True)]
    assert spoken[0].seconds == pytest.approx(duration(audio, 24_000), abs=0.01)
    assert heard[0].at <= thought[0].at <= spoken[0].at
    assert steering.counts == {"asr": 1, "chat": 1, "voice": 1}


async def test_audio_at_another_rate_is_understood(steering: Steering) -> None:
    steering.add(Scene(110))
    assert await transcribe(steering, voice.say(110, 1.0), rate=24_000) == "scene 110"


async def test_the_longest_mark_with_a_scene_is_answered_and_all_are_recorded(steering: Steering) -> None:
    steering.add(Scene(120, "hey you"))
    steering.add(Scene(121, "light on"))
    both = voice.say(120, 0.7) + bytes(6_400) + voice.say(121, 1.5)
    assert await transcribe(steering, both) == "scene 121: light on"
    assert [one.mark for one in steering.heard(120)[0].marks] == [120, 121]
    assert steering.heard(120) == steering.heard(121)
    steering.release(121)
    assert await transcribe(steering, both) == "scene 120: hey you"


async def test_audio_without_a_scene_is_nothing_and_counted(steering: Steering) -> None:
    assert await transcribe(steering, bytes(32_000)) == ""
    assert await transcribe(steering, voice.say(130, 1.0)) == ""
    assert steering.counts == {"asr": 2, "stray asr": 2}
    assert [one.detail for one in steering.strays] == ["1.00 s with marks []", "1.00 s with marks [130]"]
    assert len(steering.heard(130)) == 1


async def test_recognition_may_hear_nothing_fail_or_be_silent(steering: Steering, falls_silent: FallsSilent) -> None:
    steering.add(Scene(140, "lost", asr="empty"))
    steering.add(Scene(141, asr="error"))
    steering.add(Scene(142, asr="silent"))
    assert await transcribe(steering, voice.say(140, 1.0)) == ""
    with pytest.raises(ProviderError, match="500"):
        await transcribe(steering, voice.say(141, 1.0))
    await falls_silent(transcribe(steering, voice.say(142, 1.0), timeout=LONG), lambda: steering.heard(142))
    assert [len(steering.heard(mark)) for mark in (140, 141, 142)] == [1, 2, 1]


async def test_each_request_of_a_turn_gets_its_round(steering: Steering) -> None:
    steering.add(calls(150, "self.audio_speaker.set_volume", {"volume": 30}, then="Scene 150 is quiet now."))
    conversation = [system(), user(7_000), Message("assistant", "What?"), user(150)]
    text, asked = await think(steering, *conversation, offers=(VOLUME,))
    assert text == ""
    assert [(call.name, json.loads(call.arguments)) for call in asked] == [(VOLUME.name, {"volume": 30})]
    conversation += [Message("assistant", "", asked), Message("tool", "true", call_id=asked[0].id)]
    assert await think(steering, *conversation, offers=(VOLUME,)) == ("Scene 150 is quiet now.", ())
    conversation += [Message("assistant", "Scene 150 is quiet now.")]
    over, _ = await think(steering, *conversation)
    assert over.startswith("Scene 150 is over")
    again, _ = await think(steering, *conversation, user(150))
    assert again == ""
    assert [len(one.tools) for one in steering.asked(150)] == [1, 1, 1, 1], "calls are sent with their tools"
    assert steering.asked(150)[0].tools[0]["type"] == "function"


async def test_several_calls_and_broken_arguments_arrive_as_written(steering: Steering) -> None:
    long: dict[str, JsonValue] = {"text": "长" * 50, "deep": {"list": [1, 2.5, None, True]}}
    act = Round("One moment.", calls=(("self.screen.show", long), ("self.led.on", '{"level":')), pace=0.01)
    steering.add(Scene(160, rounds=(act,)))
    text, asked = await think(steering, user(160), offers=(VOLUME,))
    assert text == "One moment."
    assert [call.name for call in asked] == ["self.screen.show", "self.led.on"]
    assert json.loads(asked[0].arguments) == long
    assert asked[1].arguments == '{"level":'
    assert len({call.id for call in asked}) == 2


async def test_a_scene_without_rounds_and_an_empty_answer(steering: Steering) -> None:
    steering.add(Scene(170))
    steering.add(Scene(171, rounds=(Round(),)))
    assert await think(steering, user(170)) == ("Scene 170 is answered and there is nothing more to say in it.", ())
    assert await think(steering, user(171)) == ("", ())


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("status 401", "401"),
        ("status 500", "500"),
        ("breaks off after 0", "broke off"),
    ],
)
async def test_the_model_fails_as_its_round_says(steering: Steering, fault: str, reason: str) -> None:
    steering.add(Scene(180, rounds=(Round("Nobody hears this.", fault=fault),)))
    with pytest.raises(ProviderError, match=reason):
        await think(steering, user(180))
    assert steering.asked(180)


async def test_the_model_is_silent_as_its_round_says(steering: Steering, falls_silent: FallsSilent) -> None:
    steering.add(Scene(180, rounds=(Round("Nobody hears this.", fault="silent"),)))
    await falls_silent(think(steering, user(180), timeout=LONG), lambda: steering.asked(180))


async def test_an_answer_breaks_off_in_the_middle_of_its_text(
    steering: Steering, caplog: pytest.LogCaptureFixture
) -> None:
    steering.add(Scene(181, rounds=(Round("one two three four", fault="breaks off after 2 pieces"),)))
    llm, said = OpenAiLlm(steering.url, None, "m", 240.0), ""
    with pytest.raises(ProviderError, match="broke off"):
        async with aclosing(llm.stream([user(181)], [])) as events:
            async for event in events:
                assert isinstance(event, TextDelta)
                said += event.text
    await llm.aclose()
    assert said == "one two"
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_slow_model_keeps_its_times(steering: Steering) -> None:
    steering.add(Scene(191, rounds=(Round("so slow", before=SHORT),)))
    with pytest.raises(ProviderError, match="silent for too long"):
        await think(steering, user(191), timeout=SHORT / 3)
    assert await think(steering, user(191)) == ("so slow", ())


async def test_a_conversation_without_a_scene_gets_a_plain_answer(steering: Steering) -> None:
    assert await think(steering, Message("user", "hello there")) == ("No scene matches this.", ())
    assert await think(steering, user(423)) == ("No scene matches this.", ())
    assert steering.counts["stray chat"] == 2
    assert [one.detail for one in steering.strays] == ["hello there", "scene 423: hello"]


async def test_the_reply_lasts_as_long_as_the_scene_says_in_whatever_pieces(steering: Steering) -> None:
    text = long_text(200, 4)
    steering.add(Scene(201, rounds=(Round(text),), reply_seconds=8.0))
    sentences = [f"{sentence}." for sentence in text.removesuffix(".").split(". ")]
    audio = [await speak(steering, sentence, rate=16_000) for sentence in sentences]
    assert sum(duration(one, 16_000) for one in audio) == pytest.approx(8.0, abs=0.1)
    assert all([found.mark for found in voice.read(one)] == [201] for one in audio)
    assert len(set(audio)) == 4, "sentences sound alike"
    assert audio[0] == await speak(steering, sentences[0], rate=16_000)


async def test_a_sentence_without_a_mark_belongs_to_the_scene_that_was_asked_last(steering: Steering) -> None:
    for mark in (210, 209, 214):
        steering.add(Scene(mark, rounds=(Round("**Good** morning! And a good day."),)))
    await think(steering, user(209))
    await think(steering, user(210))
    assert [one.mark for one in voice.read(await speak(steering, "good morning"), 24_000)] == [210]
    assert len(steering.spoken(210)) == 1


async def test_a_foreign_sentence_is_said_without_a_mark(steering: Steering) -> None:
    audio = await speak(steering, "Sorry, something went wrong.")
    assert duration(audio, 24_000) == pytest.approx(0.06 * 28, abs=0.01)
    assert voice.read(audio, 24_000) == []
    assert steering.counts == {"voice": 1, "stray voice": 1}


async def test_the_voice_fails_is_silent_or_slow_as_its_scene_says(
    steering: Steering, falls_silent: FallsSilent
) -> None:
    for mark, manner in ((220, "error"), (221, "silent"), (222, "slow")):
        steering.add(Scene(mark, voice=manner, reply_seconds=0.4))  # type: ignore[arg-type]  # one of them each
    with pytest.raises(ProviderError, match="500"):
        await speak(steering, "Scene 220 is mute.")
    await falls_silent(speak(steering, "Scene 221 is mute.", timeout=LONG), lambda: steering.spoken(221))
    with pytest.raises(ProviderError, match="silent for too long"):
        await speak(steering, "Scene 222 is slow.", timeout=SHORT)
    assert duration(await speak(steering, "Scene 222 is slow."), 24_000) == pytest.approx(0.4)


async def test_it_is_told_when_the_server_did_not_want_the_rest(steering: Steering) -> None:
    steering.add(Scene(231, voice="slow", reply_seconds=60.0))
    tts = OpenAiTts(steering.url, None, "m", "v", None, 24_000, 240.0)
    async with aclosing(tts.speak("Scene 231 goes on and on.", "en")) as pieces:
        await anext(pieces)
        assert not steering.spoken(231)[0].done
    await tts.aclose()
    assert await steering.until(lambda: steering.spoken(231)[0].aborted, 240.0)
    assert 0 < steering.spoken(231)[0].seconds < 50


async def test_waiting_ends_with_the_condition_or_the_time(steering: Steering) -> None:
    steering.add(Scene(240))
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(steering.until(lambda: steering.heard(240), 240.0))
        await transcribe(steering, voice.say(240, 1.0))
    assert waiting.result() is True
    assert await steering.until(lambda: steering.heard(241), 0.05) is False


async def test_marks_are_lent_in_turn_and_their_old_records_forgotten(steering: Steering) -> None:
    first = steering.free_mark()
    steering.add(Scene(first))
    await transcribe(steering, voice.say(first, 1.0))
    steering.release(first)
    assert len(steering.heard(first)) == 1
    others = [steering.free_mark() for _ in range(len(voice.MARKS) - 1)]
    assert len({first, *others}) == len(voice.MARKS)
    assert steering.free_mark() == first
    assert steering.heard(first) == []
    with pytest.raises(Overloaded):
        steering.free_mark()


async def test_answers_under_way_end_with_the_models(caplog: pytest.LogCaptureFixture) -> None:
    async with asyncio.timeout(240), asyncio.TaskGroup() as group:
        async with Steering("127.0.0.1", 0) as models:
            models.add(Scene(250, asr="silent", voice="slow", rounds=(Round("late", before=30.0),)))
            waiting = [
                group.create_task(_fails(transcribe(models, voice.say(250, 1.0)))),
                group.create_task(_fails(think(models, user(250)))),
                group.create_task(_fails(speak(models, "Scene 250"))),
            ]
            assert await models.until(lambda: models.heard(250) and models.asked(250) and models.spoken(250), 240.0)
        assert [await one for one in waiting] == [True] * 3
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def _fails(asking: object) -> bool:
    try:
        await asking  # type: ignore[misc]  # one of the three coroutines above
    except ProviderError:
        return True
    return False


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


async def test_an_address_in_use_is_told(steering: Steering) -> None:
    with pytest.raises(ConfigError, match="cannot listen"):
        Steering("127.0.0.1", steering.port)


async def test_alone_it_answers_every_mark() -> None:
    port = free_port()
    async with asyncio.timeout(240), asyncio.TaskGroup() as group:
        serving = group.create_task(server.run("127.0.0.1", port))
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}/v1", timeout=240) as client:
            files = {"file": ("a.wav", write_wav(voice.say(301, 1.0), 16_000), "audio/wav")}
            while not await _listens(port):
                await asyncio.sleep(0.01)
            heard = await client.post("audio/transcriptions", files=files)
            spoken = await client.post("audio/speech", json={"input": "Scene 301 talks."})
        serving.cancel()
    assert heard.json() == {"text": "scene 301"}
    pcm, rate = read_wav(spoken.content)
    assert [one.mark for one in voice.read(pcm, rate)] == [301]


@pytest.mark.parametrize("form", ["json", "verbose_json", "text"])
async def test_a_transcript_comes_in_the_form_that_is_wanted(
    steering: Steering, http: httpx2.AsyncClient, form: str
) -> None:
    steering.add(Scene(311, "hello"))
    files = {"file": ("a.wav", write_wav(voice.say(311, 1.0), 16_000), "audio/wav")}
    answered = await http.post("audio/transcriptions", files=files, data={"model": "m", "response_format": form})
    assert answered.status_code == 200
    text = answered.text.strip() if form == "text" else answered.json()["text"]
    assert text == "scene 311: hello"
    if form == "verbose_json":
        assert answered.json()["duration"] == 1.0
        assert answered.json()["segments"][0]["text"] == text


@pytest.mark.parametrize(
    ("files", "data", "why"),
    [
        ({}, {"model": "m"}, "There is no form field"),
        ({"file": ("a.mp3", b"ID3\0\0\0\0\0\0\0\0\0\0\0", "audio/mpeg")}, {}, "Only WAV"),
        ({"file": ("a.wav", b"RIFF", "audio/wav")}, {}, "Only WAV"),
        ({"file": ("a.wav", write_wav(bytes(10), 16_000), "audio/wav")}, {"response_format": "srt"}, "must be json"),
    ],
)
async def test_a_wrong_transcription_request_is_refused_with_a_reason(
    http: httpx2.AsyncClient, files: dict[str, tuple[str, bytes, str]], data: dict[str, str], why: str
) -> None:
    answered = await http.post("audio/transcriptions", files=files, data=data)
    assert answered.status_code == 400
    assert why in answered.json()["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"model":"m"}', b'{"model":"m","messages":[]}', b'{"model":"m","messages":[{"role":"x"}]}'],
)
async def test_a_wrong_chat_request_is_refused_with_a_reason(http: httpx2.AsyncClient, body: bytes) -> None:
    answered = await http.post("chat/completions", content=body)
    assert answered.status_code == 400
    assert answered.json()["error"]["message"]


@pytest.mark.parametrize(
    "body", [b"{", b"{}", b'{"input":"a","response_format":"mp3"}', b'{"input":"a","sample_rate":7}']
)
async def test_a_wrong_speech_request_is_refused_with_a_reason(http: httpx2.AsyncClient, body: bytes) -> None:
    answered = await http.post("audio/speech", content=body)
    assert answered.status_code == 400
    assert answered.json()["error"]["message"]


async def test_a_request_that_is_too_large_is_refused(http: httpx2.AsyncClient) -> None:
    answered = await http.post("audio/speech", content=bytes(16 * 1024 * 1024 + 1))
    assert answered.status_code == 413


async def test_models_are_listed_and_other_paths_unknown(http: httpx2.AsyncClient) -> None:
    assert (await http.get("models")).json()["data"][0]["id"] == "fleet-conformance"
    assert (await http.get("elsewhere")).status_code == 404


async def test_an_answer_comes_whole_where_no_stream_is_wanted(steering: Steering, http: httpx2.AsyncClient) -> None:
    steering.add(calls(319, "self.led.on", {"level": 1}))
    tool = {"type": "function", "function": {"name": "device__self_led_on"}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "Scene319led on"}]}]
    body = {"model": "m", "messages": messages, "tools": [tool]}
    first = (await http.post("chat/completions", json=body)).json()["choices"][0]
    assert first["finish_reason"] == "tool_calls"
    call = first["message"]["tool_calls"][0]
    assert call["function"] == {"name": "device__self_led_on", "arguments": '{"level": 1}'}
    messages += [first["message"], {"role": "tool", "tool_call_id": call["id"], "content": "ok"}]
    second = (await http.post("chat/completions", json=body)).json()
    assert second["choices"][0]["message"]["content"] == "Scene 319: done"
    assert second["usage"]["total_tokens"] > 0


async def test_an_answer_that_is_not_streamed_breaks_off_too(steering: Steering, http: httpx2.AsyncClient) -> None:
    steering.add(Scene(321, rounds=(Round("half", fault="breaks off after 1 piece"),)))
    body = {"model": "m", "messages": [{"role": "user", "content": "scene 321"}]}
    with pytest.raises(httpx2.RemoteProtocolError):
        await http.post("chat/completions", json=body)


async def test_usage_comes_with_a_stream_only_when_it_is_wanted(steering: Steering, http: httpx2.AsyncClient) -> None:
    steering.add(answer(322, "Scene 322 ends."))
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "scene 322"}]}
    plain = (await http.post("chat/completions", json=body)).text
    assert "usage" not in plain
    assert plain.endswith("data: [DONE]\n\n")
    asking = {**body, "stream_options": {"include_usage": True}}
    events = (await http.post("chat/completions", json=asking)).text.split("\n\n")
    assert json.loads(events[-3].removeprefix("data: "))["usage"]["completion_tokens"] == 4


@pytest.mark.parametrize("rate", [16_000, 24_000, 48_000])
async def test_the_voice_speaks_at_the_rate_and_in_the_form_that_is_wanted(
    steering: Steering, http: httpx2.AsyncClient, rate: int
) -> None:
    steering.add(Scene(332))
    asking = {"model": "m", "voice": "v", "input": "Scene 332 speaks.", "sample_rate": rate}
    pcm = (await http.post("audio/speech", json={**asking, "response_format": "pcm"})).content
    wav = await http.post("audio/speech", json={**asking, "response_format": "wav"})
    assert wav.headers["content-type"] == "audio/wav"
    assert read_wav(wav.content) == (pcm, rate)
    assert [one.mark for one in voice.read(resample(pcm, rate, 16_000))] == [332]


async def test_a_request_that_breaks_off_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    async with asyncio.timeout(240), Steering("127.0.0.1", 0) as models:
        _, writer = await asyncio.open_connection("127.0.0.1", models.port)
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        scene = Scene(models.free_mark(), rounds=(Round("It goes on."),))
        models.add(scene)
        assert (await think(models, Message("user", scene.words)))[0] == "It goes on."
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
