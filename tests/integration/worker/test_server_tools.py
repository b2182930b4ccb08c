"""The server's tools in the turns of a voice device: offered, run, and kept with the device."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fleet.adapters.redis.access.admissions import Admissions
from fleet.adapters.redis.sessions.personas import Personas
from fleet.adapters.tools.load import open_tools
from fleet.core.ports import CallsAsked, LlmEvent, ToolCall
from fleet.core.server_tools import Persona
from fleet.core.text.phrases import phrase
from fleet.ground.errors import ProviderError, Unavailable
from fleet.ground.settings import load
from fleet.wire import edge_messages
from fleet.wire.identity import CredentialKeys
from tests.integration.worker.scene import VOLUME, Scene, asks, says, stand, text, tool, work
from tests.support.mcp_files import tool_program, until_offered, write_servers
from tests.support.mosquitto_server import MosquittoServer

BUILT_IN = {
    "get_weather",
    "get_current_time",
    "get_location",
    "set_response_language",
    "get_response_language",
    "list_supported_languages",
    "enter_roleplay_mode",
    "exit_roleplay_mode",
    "get_roleplay_status",
    "list_available_characters",
}
REMINDERS = {"set_reminder", "list_reminders", "cancel_reminder"}
LIMIT = 240


@asynccontextmanager
async def equip(stage: Scene, **settings: Any) -> AsyncIterator[None]:
    """Let the workers of the block offer the server's tools."""
    async with open_tools(load(tool_seconds=60, **settings)) as tools:
        stage.resources = replace(stage.resources, server_tools=tools)
        yield


@pytest.fixture
async def bare(redis_url: str, own_broker: MosquittoServer, keys: CredentialKeys) -> AsyncIterator[Scene]:
    """A device and an edge; the tests bring the workers."""
    async with stand(redis_url, own_broker, keys) as one:
        yield one


@pytest.fixture
async def stage(bare: Scene) -> AsyncIterator[Scene]:
    """A worker that offers the built-in tools, and its device."""
    async with equip(bare), work(bare.resources, bare.broker):
        await bare.reconnect()
        yield bare


def outcomes(stage: Scene) -> list[str]:
    """Return what the model was told of the calls of its last but one message."""
    return [message.text for message in stage.llm.asked[-1][0] if message.role == "tool"]


async def converse(stage: Scene, session: str, *script: list[LlmEvent]) -> list[str]:
    stage.llm.script = list(script)
    await stage.utter(session, "please")
    return await stage.spoken()


async def test_the_ten_tools_are_offered_beside_the_devices_own(stage: Scene) -> None:
    session = await stage.prepare(VOLUME)
    assert await converse(stage, session, says("Hello.")) == ["Hello."]
    offered = {offer.name for offer in stage.llm.asked[-1][1]}
    assert offered == BUILT_IN | REMINDERS | {"audio_speaker_set_volume"}


async def test_a_call_of_the_servers_tool_is_answered_here_and_the_device_hears_nothing_of_it(stage: Scene) -> None:
    session = await stage.prepare(VOLUME)
    spoken = await converse(stage, session, asks("get_current_time", '{"timezone": "东京"}'), says("Late."))
    assert spoken == ["Late."]
    assert json.loads(outcomes(stage)[-1])["timezone"] == "Asia/Tokyo"


async def test_a_device_keeps_the_names_of_its_own_tools(stage: Scene) -> None:
    session = await stage.prepare(tool("self.get_current_time"))
    stage.llm.script = [asks("get_current_time"), says("Late.")]
    await stage.utter(session, "what time is it")
    request = await stage.device.hear_request("tools/call")
    assert request["params"]["name"] == "self.get_current_time"
    await stage.device.answer(request, result=text("half past nine"))
    assert await stage.spoken() == ["Late."]
    assert outcomes(stage) == ["half past nine"]
    names = [offer.name for offer in stage.llm.asked[-1][1]]
    assert len(names) == len(set(names)) == len(BUILT_IN | REMINDERS) + 1


async def test_tools_of_both_run_side_by_side_in_one_message(stage: Scene) -> None:
    session = await stage.prepare(VOLUME)
    calls = (
        ToolCall("c1", "audio_speaker_set_volume", '{"volume": 30}'),
        ToolCall("c2", "get_response_language", "{}"),
        ToolCall("c3", "fly", "{}"),
    )
    stage.llm.script = [[CallsAsked(calls)], says("Done.")]
    await stage.utter(session, "please")
    await stage.device.answer(await stage.device.hear_request("tools/call"), result=text("true"))
    assert await stage.spoken() == ["Done."]
    volume, language, unknown = outcomes(stage)
    assert volume == "true"
    assert json.loads(language)["language"] is None
    assert "TOOL_NOT_FOUND" in unknown
    assert "get_weather" in unknown


async def test_language_and_role_are_kept_with_the_device_beyond_turn_and_worker(bare: Scene) -> None:
    async with equip(bare):
        async with work(bare.resources, bare.broker):
            await bare.reconnect()
            session = await bare.prepare(VOLUME)
            both = (
                ToolCall("c1", "set_response_language", '{"language": "de"}'),
                ToolCall("c2", "enter_roleplay_mode", '{"character": "船长"}'),
            )
            assert await converse(bare, session, [CallsAsked(both)], says("Ahoi.")) == ["Ahoi."]
            assert not any(outcome.startswith("error") for outcome in outcomes(bare))
        async with work(bare.resources, bare.broker):
            await converse(bare, session, asks("exit_roleplay_mode"), says("Gut."))
            prompt = bare.llm.asked[-1][0][0].text
            assert "German" in prompt
            assert "Captain Saltbeard" in prompt
            await converse(bare, session, says("Ja."))
            prompt = bare.llm.asked[-1][0][0].text
            assert "German" in prompt
            assert "Captain Saltbeard" not in prompt


async def test_an_answer_is_spoken_in_the_language_that_was_set(stage: Scene) -> None:
    session = await stage.prepare(VOLUME)

    async def languages() -> list[str]:
        found = []
        async with asyncio.timeout(LIMIT):
            while not isinstance(last := await stage.edge.next(), edge_messages.EndAnswerCommand):
                if isinstance(last, edge_messages.SpeakSentenceCommand):
                    found.append(last.language)
        return found

    both = [*says("One moment."), *asks("set_response_language", '{"language": "de"}')]
    stage.llm.script = [both, says("Gern.")]
    await stage.utter(session, "speak German")
    assert await languages() == ["en", "de"]
    stage.llm.script = [says("Ja.")]
    await stage.utter(session, "really?")
    assert await languages() == ["de"]


@pytest.mark.parametrize(("wanted", "language"), [("zh", "zh"), ("de", "en")])
async def test_an_apology_is_spoken_in_the_language_that_was_set(stage: Scene, wanted: str, language: str) -> None:
    """One that there is no apology in is not pretended to be spoken."""
    session = await stage.prepare(VOLUME)
    stage.llm.script = [
        asks("set_response_language", json.dumps({"language": wanted})),
        [ProviderError("down", retryable=False)],
    ]
    await stage.utter(session, "speak another language")
    await stage.edge.next(edge_messages.StartAnswerCommand)
    said = await stage.edge.next(edge_messages.SpeakSentenceCommand)
    assert (said.text, said.language) == (phrase("failed", language), language)


async def test_the_time_is_that_of_the_devices_own_zone(stage: Scene) -> None:
    admissions = Admissions(stage.resources.store)
    session = await stage.prepare(VOLUME)
    await admissions.set_timezone(stage.device.mac, "-570")
    days = {_day_there()}
    await converse(stage, session, asks("get_current_time"), says("Early."))
    days.add(_day_there())
    assert json.loads(outcomes(stage)[-1])["timezone"] == "UTC-09:30"
    told = next(message.text for message in stage.llm.asked[-1][0] if message.role == "user")
    assert any(day in told for day in days)
    await admissions.set_timezone(stage.device.mac, "")
    await converse(stage, session, asks("get_current_time"), says("Late."))
    assert json.loads(outcomes(stage)[-1])["timezone"] == "UTC+00:00"


def _day_there() -> str:
    return (datetime.now(UTC) - timedelta(minutes=570)).strftime("%Y-%m-%d")


async def test_a_persona_that_cannot_be_kept_is_not_taken(stage: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any) -> None:
        raise Unavailable("away")

    monkeypatch.setattr(Personas, "keep", fail)
    session = await stage.prepare(VOLUME)
    ask = asks("set_response_language", '{"language": "de"}')
    await converse(stage, session, ask, asks("get_response_language", call="c2"), says("Sorry."))
    first, second = outcomes(stage)
    assert first.startswith("error: not done")
    assert json.loads(second)["language"] is None
    context = await stage.resources.conversations.context(stage.device.mac, 1)
    assert context.persona == Persona()


def lines_of(path: Path) -> list[str]:
    return sorted(path.read_text().split()) if path.exists() else []


async def until_written(path: Path, *lines: str) -> None:
    async with asyncio.timeout(LIMIT):
        while lines_of(path) != sorted(lines):
            await asyncio.sleep(0.02)


async def test_what_an_mcp_server_may_have_done_for_a_dead_worker_is_not_done_again(
    bare: Scene, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    servers = write_servers(tmp_path / "servers.json", calc=tool_program(notes))
    async with equip(bare, mcp_servers=servers):
        assert bare.resources.server_tools
        await until_offered(bare.resources.server_tools, "calc_ponder")
        both = (ToolCall("c1", "calc_ponder", '{"text": "act"}'), ToolCall("c2", "calc_peep", '{"text": "look"}'))
        bare.llm.script = [[CallsAsked(both)], asks("calc_note", '{"text": "later"}', call="c1"), says("Done.")]
        async with work(bare.resources, bare.broker):
            await bare.reconnect()
            session = await bare.prepare(VOLUME)
            await bare.utter(session, "please")
            await until_written(notes, "act", "look")
        async with work(bare.resources, bare.broker):
            assert await bare.spoken() == ["Done."]
        acted, looked, later = outcomes(bare)
        assert acted.startswith("error: unknown whether it was done")
        assert looked == '{"result": "peeped"}'
        assert later == '{"result": "noted later"}'
        assert lines_of(notes) == ["act", "later", "look", "look"]
