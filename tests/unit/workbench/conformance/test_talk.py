import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest

from fleet.adapters.speech.pcm import write_wav
from fleet.workbench.conformance.probe.mail import Message
from fleet.workbench.conformance.stage import Answer, Setup, Stage
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.steering.records import HeardAudio
from fleet.workbench.conformance.steering.server import Steering
from fleet.workbench.conformance.talk import ask, complete, heard, length, span, talking, understood
from fleet.workbench.conformance.verdict import Failed
from fleet.workbench.sim.profiles.profile import find_profile
from tests.support.scripted_server import ScriptedServer


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with Steering("127.0.0.1", 0) as steering:
        yield Stage(Setup("http://nowhere/", steering), find_profile("P1"))


async def recognise(stage: Stage, pcm: bytes) -> None:
    async with httpx2.AsyncClient(trust_env=False) as client:
        files = {"file": ("a.wav", write_wav(pcm, voice.RATE), "audio/wav")}
        await client.post(f"{stage.steering.url}/audio/transcriptions", files=files, timeout=10)


async def test_what_recognition_was_given_is_measured(stage: Stage) -> None:
    with stage.scene() as scene:
        with pytest.raises(Failed, match="no audio"):
            heard(stage, scene)
        await recognise(stage, voice.say(scene.mark, 0.4))
        await recognise(stage, voice.say(scene.mark, 1.2))
        assert complete(stage, scene, 1.2) == pytest.approx(1.2, abs=0.1)


@pytest.mark.parametrize(("given", "complaint"), [(0.8, r"0\.[78]\d s of 1\.2 s"), (2.4, r"only 1\.2 s were said")])
async def test_speech_that_is_cut_or_doubled_fails(stage: Stage, given: float, complaint: str) -> None:
    with stage.scene() as scene:
        await recognise(stage, voice.say(scene.mark, given))
        with pytest.raises(Failed, match=complaint):
            complete(stage, scene, 1.2)


def test_a_mark_spans_from_its_first_to_its_last_run() -> None:
    audio = HeardAudio(
        0.0, 3.0, [voice.Marked(111, 0.1, 0.5), voice.Marked(222, 0.6, 1), voice.Marked(111, 2, 2.5)], b""
    )
    assert span(audio, 111) == (0.1, 2.5)
    assert length(audio, 111) == pytest.approx(0.9)
    assert length(audio, 333) == 0.0
    with pytest.raises(Failed, match="missing"):
        span(audio, 333)


async def test_the_answer_to_another_scene_fails(stage: Stage) -> None:
    def answer(text: str, sentence: str) -> Answer:
        said = [Message(2.0, {"type": "tts", "state": "sentence_start", "text": sentence}, b"", "")]
        return Answer(Message(0.0, {"type": "stt", "text": text}, b"", ""), said[0], said[0], said)

    with stage.scene() as scene:
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
        stage = Stage(Setup(server.ota_url), find_profile("P1"))
        async with talking(stage) as probe:
            answer = await ask(probe, voice.say(111, 1.0))
            assert (str(answer.heard), answer.text) != ("", "x")
            await server.expect(type="listen", state="start", mode="auto")
            assert probe.microphone.on
            assert not probe.speaking


async def test_a_device_may_keep_from_saying_so() -> None:
    async with ScriptedServer.running() as server, asyncio.TaskGroup() as group:
        group.create_task(serve(server), name="server")
        async with talking(Stage(Setup(server.ota_url), find_profile("P1"))) as probe:
            probe.relisten = False
            await ask(probe, voice.say(111, 1.0))
            assert probe.microphone.on
            await server.expect_datagrams(len(server.datagrams) + 2)
            assert sum(message["type"] == "listen" for message in server.messages) == 1


async def test_a_stop_without_a_start_changes_nothing() -> None:
    async with ScriptedServer.running() as server, asyncio.TaskGroup() as group:
        group.create_task(serve(server), name="server")
        async with talking(Stage(Setup(server.ota_url), find_profile("P1"))) as probe:
            probe.microphone.on = False
            server.send(type="tts", session_id=server.session, state="stop")
            await probe.mail.expect("tts", "stop", seconds=5)
            assert not probe.microphone.on
            probe.microphone.on = True
            await probe.mail.expect("tts", "start", seconds=10)


async def test_with_a_button_the_microphone_is_on_only_while_it_is_pressed() -> None:
    async with ScriptedServer.running() as server, asyncio.TaskGroup() as group:
        group.create_task(serve(server), name="server")
        async with talking(Stage(Setup(server.ota_url), find_profile("P5"))) as probe:
            assert not probe.microphone.on
            await ask(probe, voice.say(111, 1.2))
            assert not probe.microphone.on
            await server.expect(type="listen", state="stop")
