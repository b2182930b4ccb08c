import re
from collections.abc import AsyncIterator

import httpx2
import pytest

from fleet.workbench.conformance.context import CheckContext, Setup, fresh_mac
from fleet.workbench.conformance.steering.script import Round
from fleet.workbench.conformance.steering.server import Steering
from fleet.workbench.conformance.verdict import Failed, NotApplicable, span
from fleet.workbench.sim.profiles.profile import find_profile
from tests.support.scripted_server import ScriptedServer

P1 = find_profile("P1")


@pytest.fixture
async def steering() -> AsyncIterator[Steering]:
    async with Steering("127.0.0.1", 0) as server, httpx2.AsyncClient(trust_env=False, timeout=240) as client:
        await client.get(f"{server.url}/models")
        yield server


async def test_a_scene_has_a_mark_of_its_own_in_all_that_it_says(steering: Steering) -> None:
    context = CheckContext(Setup("http://nowhere/", steering), P1)
    rounds = (Round(calls=(("lamp", {}),)), Round("All is well."), Round("It is {mark}."))
    with context.scene(rounds=rounds) as one, context.scene(transcript="say {mark}", asr="empty") as other:
        assert one.mark != other.mark
        assert one.transcript == "hello"
        assert one.words == f"scene {one.mark}: hello"
        assert [act.text for act in one.rounds] == ["", f"Scene {one.mark}: All is well.", f"It is {one.mark}."]
        assert one.rounds[0].calls == (("lamp", {}),)
        assert (other.transcript, other.asr) == (f"say {other.mark}", "empty")


async def test_a_monologue_is_as_long_as_wanted_and_of_different_sentences(steering: Steering) -> None:
    with CheckContext(Setup("http://nowhere/", steering), P1).monologue(20.0) as scene:
        sentences = re.findall(rf"Scene {scene.mark} goes on with sentence \d+\.", scene.rounds[0].text)
        assert scene.reply_seconds == 20.0
        assert len(sentences) == len(set(sentences)) == 10


async def test_a_mark_is_given_back_even_after_a_failure(steering: Steering) -> None:
    context = CheckContext(Setup("http://nowhere/", steering), P1)
    for _ in range(1000):
        with pytest.raises(Failed), context.scene():
            raise Failed("no")


def test_without_scripted_models_there_is_no_scene() -> None:
    context = CheckContext(Setup("http://nowhere/"), P1)
    with pytest.raises(NotApplicable, match="scripted models"), context.scene():
        pass


async def test_what_a_device_complains_about_is_found_unless_it_is_tolerated() -> None:
    async with ScriptedServer.running() as server:
        context = CheckContext(Setup(server.ota_url), P1, tolerated={"json-invalid"})
        async with context.scripted_device() as device:
            server.send_raw(b"{")
            server.send(type="tts")
            await device.messages.expect("tts", seconds=240)
    assert context.findings == ["field-missing: tts without state (str)"]


async def test_a_device_that_bootstrap_gives_nothing_fails_the_check() -> None:
    async with ScriptedServer.running() as server:
        server.ota_answer = {"mqtt": {}}
        with pytest.raises(Failed, match="no usable mqtt section"):
            async with CheckContext(Setup(server.ota_url), P1).scripted_device():
                pass


def test_macs_are_locally_administered_and_never_the_same() -> None:
    macs = {fresh_mac() for _ in range(100)}
    assert len(macs) == 100
    assert all(re.fullmatch(r"02(:[0-9a-f]{2}){5}", mac) for mac in macs)


def test_times_are_told_as_people_read_them() -> None:
    assert [span(seconds) for seconds in (0.012, 0.9, 1.0, 12.34)] == ["12 ms", "900 ms", "1.0 s", "12.3 s"]
