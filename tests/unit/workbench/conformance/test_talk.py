import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest

from fleet.adapters.speech.pcm import write_wav
from fleet.workbench.conformance.context import Answer, CheckContext, Setup
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.steering.records import HeardAudio
from fleet.workbench.conformance.steering.server import Steering
from fleet.workbench.conformance.talk import ask, complete, heard, length, span, talking, understood
from fleet.workbench.conformance.verdict import Failed
from fleet.workbench.sim.profiles.profile import find_profile
from fleet.workbench.sim.scripted.received import ReceivedMessage
from tests.support.scripted_server import ScriptedServer


@pytest.fixture
async def context() -> AsyncIterator[CheckContext]:
    async with Steering("127.0.0.1", 0) as steering:
        yield CheckContext(Setup("http://nowhere/", steering), find_profile("P1"))


async def recognise(context: CheckContext, pcm: bytes) -> None:
    async with httpx2.AsyncClient(trust_env=False, timeout=240) as client:
        files = {"file": ("a.wav", write_wav(pcm, voice.RATE), "audio/wav")}
        await client.post(f"{context.steering.url}/audio/transcriptions", files=files)


async def test_what_recognition_was_given_is_measured(context: CheckContext) -> None:
    with context.scene() as scene:
        with pytest.raises(Failed, match="no audio"):
            heard(context, scene)
        await recognise(context, voice.say(scene.mark, 0.4))
        await recognise(context, voice.say(scene.mark, 1.2))
        assert complete(context, scene, 1.2) == pytest.approx(1.2, abs=0.1)


@pytest.mark.parametrize(("given", "complaint"), [(0.8, r"0\.[78]\d s of 1\.2 s"), (2.4, r"only 1\.2 s were said")])
async def test_speech_that_is_cut_or_doubled_fails(context: CheckContext, given: float, complaint: str) -> None:
    with context.scene() as scene:
        await recognise(context, voice.say(scene.mark, given))
        with pytest.raises(Failed, match=complaint):
            complete(context, scene, 1.2)


def test_a_mark_spans_from_its_first_to_its_last_run() -> None:
    audio = HeardAudio(
        0.0, 3.0, [voice.Marked(111, 0.1, 0.5), voice.Marked(222, 0.6, 1), voice.Marked(111, 2, 2.5)], b""
    )
    assert span(audio, 111) == (0.1, 2.5)
    assert length(audio, 111) == pytest.approx(0.9)
    assert length(audio, 333) == 0.0
    with pytest.raises(Failed, match="missing"):
        span(audio, 333)


async def test_the_answer_to_another_scene_fails(context: CheckContext) -> None:
    def answer(text: str, sentence: str) -> Answer:
        said = [ReceivedMessage(2.0, {"type": "tts", "state": "sentence_start", "text": sentence}, b"", "")]
        return Answer(ReceivedMessage(0.0, {"type": "stt", "text": text}, b"", ""), said[0], said[0], said)

    with context.scene() as scene:
        understood(answer(scene.words, f"Scene {scene.mark} it is."), scene)
        with pytest.raises(Failed, match="`stt` says 'hello'"):
            understood(answer("hello", f"Scene {scene.mark} it is."), scene)
        with pytest.raises(Failed, match=r"the answer is 'Sorry\.'"):
            understood(answer(scene.words, "Sorry."), scene)


async def serve(server: ScriptedServer) -> None:
    """Answer whatever is said once there were 20 packets."""
    await server.expect(type="hello")
    server.welcome()
    await server.expect(type="listen", state="start")
    await server.expect_datagrams(20)
    server.send(type="stt", session_id=server.session, text="hi")
    for state in ("start", "stop"):
        server.send(type="tts", session_id=server.session, state=state)


async def test_a_device_talks_and_listens_again_after_the_answer() -> None:
    async with ScriptedServer.running() as server, asyncio.TaskGroup() as group:
        group.create_task(serve(server), name="server")
        context = CheckContext(Setup(server.ota_url), find_profile("P1"))
        async with talking(context) as device:
            answer = await ask(device, voice.say(111, 1.0))
            assert (str(answer.heard), answer.text) != ("", "x")
            await server.expect(type="listen", state="start", mode="auto")
            assert device.microphone.on
            assert not device.speaking


async def test_a_device_may_keep_from_saying_so() -> None:
    async with ScriptedServer.running() as server, asyncio.TaskGroup() as group:
        group.create_task(serve(server), name="server")
        async with talking(CheckContext(Setup(server.ota_url), find_profile("P1"))) as device:
            device.relisten = False
            await ask(device, voice.say(111, 1.0))
            assert device.microphone.on
            await server.expect_datagrams(len(server.datagrams) + 2)
            assert sum(message["type"] == "listen" for message in server.messages) == 1


async def test_a_stop_without_a_start_changes_nothing() -> None:
    async with ScriptedServer.running() as server, asyncio.TaskGroup() as group:
        group.create_task(serve(server), name="server")
        async with talking(CheckContext(Setup(server.ota_url), find_profile("P1"))) as device:
            device.microphone.on = False
            server.send(type="tts", session_id=server.session, state="stop")
            await device.messages.expect("tts", "stop", seconds=240)
            assert not device.microphone.on
            device.microphone.on = True
            await device.messages.expect("tts", "start", seconds=240)


async def test_with_a_button_the_microphone_is_on_only_while_it_is_pressed() -> None:
    async with ScriptedServer.running() as server, asyncio.TaskGroup() as group:
        group.create_task(serve(server), name="server")
        async with talking(CheckContext(Setup(server.ota_url), find_profile("P5"))) as device:
            assert not device.microphone.on
            await ask(device, voice.say(111, 1.2))
            assert not device.microphone.on
            await server.expect(type="listen", state="stop")
