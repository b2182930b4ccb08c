"""Checks against a server that does what a test says: one that is right, and ones that are wrong in one thing."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fleet.workbench.conformance.checks import select
from fleet.workbench.conformance.context import Setup
from fleet.workbench.conformance.results import Result
from fleet.workbench.conformance.run import Task, run_one
from fleet.workbench.sim.profiles.profile import find_profile
from fleet.workbench.sim.records.loop_lag import LoopLag
from tests.support.leaping import leaping
from tests.support.scripted_server import TOPIC, ScriptedServer

MAC = TOPIC.rsplit("/", 1)[-1]
Play = Callable[[ScriptedServer], Awaitable[None]]


def asking(*requests: dict[str, Any]) -> Play:
    """Return a server that answers hellos and then asks for tools with these requests."""

    async def play(server: ScriptedServer) -> None:
        while True:
            await server.expect(type="hello")
            server.welcome()
            for request in requests:
                server.send(type="mcp", payload={"jsonrpc": "2.0", **request})

    return play


def welcoming(**changes: Any) -> Play:
    """Return a server whose hello differs so from a right one."""

    async def play(server: ScriptedServer) -> None:
        while True:
            await server.expect(type="hello")
            server.welcome(**changes)

    return play


async def twice(server: ScriptedServer) -> None:
    key = b"k" * 16
    while True:
        await server.expect(type="hello")
        server.welcome(key)


@asynccontextmanager
async def played(play: Play) -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer.running() as server, asyncio.TaskGroup() as group:
        player = group.create_task(play(server))
        yield server
        player.cancel()


async def judge(id_: str, play: Play, **setup: str) -> Result:
    (check,) = select([id_])
    async with asyncio.timeout(240), played(play) as server:
        return await run_one(Task(check, find_profile("P1")), Setup(server.ota_url, **setup))


INITIALIZE = {"id": 1, "method": "initialize", "params": {"capabilities": {}}}
INITIALIZED = {"method": "notifications/initialized"}
LIST = {"id": 2, "method": "tools/list", "params": {"cursor": ""}}


@pytest.mark.parametrize("id_", ["M1", "H1", "H5", "H9"])
async def test_a_server_that_answers_hellos_rightly_passes(id_: str) -> None:
    result = await judge(id_, welcoming())
    assert result.outcome == "passed", result.seen


@pytest.mark.parametrize("id_", ["M1", "H5"])
async def test_a_server_that_needs_a_subscription_fails(id_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    leap = leaping(monkeypatch)

    async def leap_over_the_answer(server: ScriptedServer) -> None:
        while True:
            await server.expect(type="hello")
            leap(find_profile("P1").timing.hello)

    result = await judge(id_, leap_over_the_answer)
    assert result.outcome == "failed"
    assert "hello" in result.seen


@pytest.mark.parametrize(
    ("changes", "seen"),
    [
        ({"transport": "websocket"}, "a hello that firmware cannot use"),
        ({"udp": None}, "a hello that firmware cannot use"),
        ({"session_id": "with blank"}, "session_id 'with blank'"),
        ({"audio_params": {"sample_rate": 44_100, "frame_duration": 60}}, "sample_rate 44100"),
    ],
)
async def test_a_hello_that_is_wrong_in_one_field_fails(changes: dict[str, Any], seen: str) -> None:
    result = await judge("H1", welcoming(**changes))
    assert result.outcome == "failed"
    assert seen in result.seen


async def test_a_nonce_with_bytes_in_its_counter_fails() -> None:
    udp = {"server": "127.0.0.1", "port": 9, "key": "0" * 32, "nonce": "01" + "0" * 29 + "1"}
    result = await judge("H1", welcoming(udp=udp))
    assert result.outcome == "failed"
    assert udp["nonce"] in result.seen


async def test_a_message_that_no_firmware_can_read_fails_a_check_that_would_pass() -> None:
    async def play(server: ScriptedServer) -> None:
        await server.expect(type="hello")
        server.send(type="tts")
        server.welcome()
        await asyncio.Event().wait()

    result = await judge("H1", play)
    assert result.outcome == "failed"
    assert "answered in" in result.seen
    assert "tts without state" in result.seen


async def test_the_same_key_for_two_hellos_fails() -> None:
    result = await judge("H2", twice)
    assert (result.outcome, result.seen) == ("failed", "the same key was given twice")


async def test_a_device_that_is_turned_away_may_not_have_its_alert_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    # A standstill of this process would excuse the server.
    monkeypatch.setattr(LoopLag, "stalled_since", lambda lag, since: 0.0)

    async def play(server: ScriptedServer) -> None:
        await server.expect(type="hello")
        server.welcome()
        server.send(type="goodbye", session_id=server.session)
        server.send(type="alert", status="no", message="not you", emotion="sad")
        await asyncio.Event().wait()

    result = await judge("H7", play, refused=MAC)
    assert result.outcome == "failed"
    assert "which wipes it" in result.seen
    assert (await judge("H7", play)).outcome == "skipped"


async def test_tools_that_are_asked_for_in_order_pass() -> None:
    result = await judge("C1", asking(INITIALIZE, INITIALIZED, LIST))
    assert (result.outcome, result.seen) == ("passed", "initialize, notifications/initialized, tools/list")


@pytest.mark.parametrize(
    ("requests", "seen"),
    [
        ((INITIALIZE, LIST), "no notifications/initialized"),
        ((LIST, INITIALIZE, INITIALIZED), "in another order: tools/list, initialize"),
        ((INITIALIZE, INITIALIZED, {**LIST, "id": 1}), "an id was used twice"),
        ((INITIALIZE, INITIALIZED, {**LIST, "id": "2"}), "ids [1, '2']"),
        ((INITIALIZE, INITIALIZED, {**LIST, "params": None}), "params is null: tools/list"),
    ],
)
async def test_tools_that_are_asked_for_wrongly_fail(requests: tuple[dict[str, Any], ...], seen: str) -> None:
    result = await judge("C1", asking(*requests))
    assert result.outcome == "failed"
    assert seen in result.seen


async def test_a_server_that_closes_the_connection_of_a_device_that_pings_fails() -> None:
    async def play(server: ScriptedServer) -> None:
        await server.expect_connects(1)
        server.drop_connections()

    result = await judge("M5", play)
    assert result.outcome == "failed"
    assert "closed although the device pinged" in result.seen


async def test_a_subscription_is_not_judged_where_its_topic_is_unknown() -> None:
    async with played(welcoming()) as server:
        server.ota_answer["mqtt"]["publish_topic"] = "device-server"
        (check,) = select(["M2"])
        result = await run_one(Task(check, find_profile("P1")), Setup(server.ota_url))
    assert (result.outcome, "does not tell the topic" in result.seen) == ("skipped", True)
