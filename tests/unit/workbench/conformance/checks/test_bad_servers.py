"""Whole checks against servers that do what no server should."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx2
import pytest

from fleet.workbench.conformance.checks import select
from fleet.workbench.conformance.context import Setup
from fleet.workbench.conformance.results import Result
from fleet.workbench.conformance.run import Task, run_one
from fleet.workbench.conformance.steering.server import Steering
from fleet.workbench.sim.profiles.profile import find_profile
from tests.support.scripted_server import ScriptedServer

Act = Callable[[ScriptedServer], Awaitable[None]]


@pytest.fixture
async def steering() -> AsyncIterator[Steering]:
    async with Steering("127.0.0.1", 0) as server, httpx2.AsyncClient(trust_env=False, timeout=240) as client:
        await client.get(f"{server.url}/models")
        yield server


async def judge(check: str, act: Act, steering: Steering | None = None, profile: str = "P1") -> Result:
    async with ScriptedServer.running() as server, asyncio.TaskGroup() as group:
        acting = group.create_task(act(server), name="server")
        setup = Setup(server.ota_url, steering, idle_seconds=20.0)
        result = await run_one(Task(select([check])[0], find_profile(profile)), setup)
        acting.cancel()
        return result


async def test_a_goodbye_that_names_another_session_fails(steering: Steering) -> None:
    async def act(server: ScriptedServer) -> None:
        await server.expect(type="listen")
        server.send(type="goodbye", session_id="another")

    result = await judge("S11", act, steering)
    assert (result.outcome, "'another'" in result.seen) == ("failed", True)


async def test_a_goodbye_that_is_answered_fails() -> None:
    async def act(server: ScriptedServer) -> None:
        goodbye = await server.expect(type="goodbye")
        server.send(**goodbye)

    result = await judge("S12", act)
    assert (result.outcome, result.seen.split(":")[0]) == ("failed", "unexpected `goodbye`")


async def test_speech_before_the_address_is_known_fails(steering: Steering) -> None:
    async def act(server: ScriptedServer) -> None:
        await server.expect(type="hello")
        server.welcome()
        await server.expect(type="listen")
        server.send(type="tts", state="start", session_id=server.session)

    result = await judge("D11", act, steering)
    assert (result.outcome, result.seen.split(":")[0]) == ("failed", "unexpected `tts start`")


async def test_a_goodbye_long_before_its_time_fails() -> None:
    async def act(server: ScriptedServer) -> None:
        await server.expect(type="hello")
        server.welcome()
        await server.expect(type="listen", state="start")
        await server.expect_datagrams(8)
        server.send(type="goodbye", session_id=server.session)

    result = await judge("S15", act)
    assert (result.outcome, result.seen.endswith("s already, 20 s are set")) == ("failed", True)


@pytest.mark.parametrize(("late", "outcome"), [(False, "passed"), (True, "failed")])
async def test_a_sentence_that_crosses_with_an_interruption_is_no_fault(
    steering: Steering, late: bool, outcome: str
) -> None:
    async def act(server: ScriptedServer) -> None:
        await server.expect(type="hello")
        server.welcome()
        await server.expect(type="listen", state="start")
        await server.expect_datagrams(30)
        server.send(type="tts", state="start", session_id=server.session)
        await server.speak(2)
        await server.expect(type="abort")
        for state in ("stop", "sentence_start") if late else ("sentence_start", "stop"):
            server.send(type="tts", state=state, session_id=server.session, text="B")

    assert (await judge("S5", act, steering)).outcome == outcome
