"""Real MCP servers, good and bad ones, as child processes and over HTTP."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from fleet.adapters.tools import mcp_http, mcp_server, mcp_stdio
from fleet.adapters.tools.load import open_tools
from fleet.core.server_tools import Caller, ServerResult, ServerTools
from fleet.ground.settings import load
from tests.support.mcp_files import (
    PATIENCE,
    names,
    rude_program,
    tool_program,
    tool_server,
    until_offered,
    write_servers,
)
from tests.support.ports import LOOPBACK, free_port
from tests.support.process import ServerProcess, running

Open = Callable[..., AbstractAsyncContextManager[ServerTools]]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Return what opens the tools with these MCP servers."""

    @asynccontextmanager
    async def open_them(seconds: float = PATIENCE, **servers: dict[str, Any]) -> AsyncIterator[ServerTools]:
        path = write_servers(tmp_path / "servers.json", **servers)
        async with open_tools(load(mcp_servers=path, tool_seconds=seconds)) as tools:
            yield tools

    return open_them


@pytest.fixture(autouse=True)
def _servers_may_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_server, "ASK_SECONDS", PATIENCE)
    monkeypatch.setattr(mcp_server, "CONNECT_SECONDS", PATIENCE)
    monkeypatch.setattr(mcp_http, "_CONNECT_SECONDS", PATIENCE)


def limit(monkeypatch: pytest.MonkeyPatch, name: str, seconds: float) -> None:
    """Let calls of one server end after so long."""
    usual = mcp_server.McpServer.call

    async def call_it(server: mcp_server.McpServer, tool: str, arguments: dict[str, JsonValue]) -> ServerResult:
        if server.name == name:
            server._options = replace(server._options, seconds=seconds)
        return await usual(server, tool, arguments)

    monkeypatch.setattr(mcp_server.McpServer, "call", call_it)


@pytest.fixture(scope="session")
def http_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server over HTTP for the tests that let it live."""
    with running(tool_server(free_port(), tmp_path_factory.mktemp("mcp"))) as server:
        yield server


def at(server: ServerProcess) -> dict[str, Any]:
    return {"type": "http", "url": f"http://{LOOPBACK}:{server._port}/mcp"}


async def call(tools: ServerTools, called: str, /, **arguments: JsonValue) -> ServerResult:
    async with asyncio.timeout(PATIENCE):
        return await tools.call(called, arguments, Caller("s"))


async def test_tools_of_a_program_are_offered_beside_the_built_in_ones_and_run(opened: Open, tmp_path: Path) -> None:
    async with opened(calc=tool_program(tmp_path / "counter")) as tools:
        await until_offered(tools, "calc_add", "get_current_time")
        assert (await call(tools, "calc_add", a=2, b="40")).value == {"result": 42}
        assert (await call(tools, "calc_note", text="once")) == ServerResult({"result": "noted once"})
        assert (await call(tools, "calc_plan", place="x", options={"deep": {"er": [1]}})).value == {
            "place": "x",
            "options": {"deep": {"er": [1]}},
        }


async def test_what_a_server_says_of_its_tools_tells_which_may_be_repeated(
    opened: Open, http_server: ServerProcess
) -> None:
    async with opened(calc=at(http_server)) as tools:
        await until_offered(tools, "calc_add")
        assert tools.repeatable("calc_add")
        assert not tools.repeatable("calc_note")
        assert tools.repeatable("get_weather")
        assert not tools.repeatable("no such tool")


async def test_failures_of_tools_are_told_with_their_reasons(opened: Open, http_server: ServerProcess) -> None:
    async with opened(calc=at(http_server)) as tools:
        await until_offered(tools, "calc_fail")
        failure = await call(tools, "calc_fail", reason="the moon is away")
        assert failure.failed
        assert "the moon is away" in str(failure.value)
        assert (await call(tools, "calc_add", a=1)).failed
        unknown = await call(tools, "calc_fly")
        assert unknown.failed
        assert "calc_add" in str(unknown.value)


async def test_a_program_gets_its_own_variables_and_none_of_ours(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_API_KEY", "secret")
    async with opened(calc=tool_program(tmp_path / "counter", OWN="mine")) as tools:
        await until_offered(tools, "calc_variable")
        assert (await call(tools, "calc_variable", name="LLM_API_KEY")).value == {"result": "(not set)"}
        assert (await call(tools, "calc_variable", name="OWN")).value == {"result": "mine"}
        assert (await call(tools, "calc_variable", name="PATH")).value == {"result": os.environ["PATH"]}


@pytest.mark.parametrize("kind", ["program", "address"])
async def test_a_new_tool_is_offered_soon_after_its_server_says_so(
    opened: Open, tmp_path: Path, http_server: ServerProcess, kind: str
) -> None:
    entry = tool_program(tmp_path / "counter") if kind == "program" else at(http_server)
    async with opened(calc=entry) as tools:
        await until_offered(tools, "calc_grow")
        await call(tools, "calc_grow", name="twig")
        await until_offered(tools, "calc_twig")
        assert (await call(tools, "calc_twig")).value == "I am twig"


async def test_a_program_that_ended_is_started_again(opened: Open, tmp_path: Path) -> None:
    async with opened(calc=tool_program(tmp_path / "counter")) as tools:
        await until_offered(tools, "calc_die")
        death = await call(tools, "calc_die")
        assert death.failed
        assert "unknown whether it was done" in str(death.value)
        await until_offered(tools, "calc_add", gone=True)
        await until_offered(tools, "calc_add")
        assert (await call(tools, "calc_add", a=1, b=1)).value == {"result": 2}


async def test_tools_over_http_come_and_go_with_their_server(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_server, "LOOK_SECONDS", 0.2)
    server = tool_server(free_port(), tmp_path)
    async with opened(far=at(server)) as tools:
        assert "far_add" not in names(tools)
        with running(server):
            await until_offered(tools, "far_add")
            assert (await call(tools, "far_add", a=20, b=22)).value == {"result": 42}
        await until_offered(tools, "far_add", gone=True)
        away = await call(tools, "far_add", a=1, b=1)
        assert away.failed
        with running(server):
            await until_offered(tools, "far_add")
            assert (await call(tools, "far_add", a=2, b=2)).value == {"result": 4}


async def test_headers_are_sent_and_a_server_that_wants_others_is_no_harm(
    opened: Open, http_server: ServerProcess
) -> None:
    nobody = {"url": f"http://{LOOPBACK}:{free_port()}/mcp"}
    wrong = {"url": f"http://{LOOPBACK}:{http_server._port}/elsewhere"}
    async with opened(far={**at(http_server), "headers": {"X-Key": "k"}}, nobody=nobody, wrong=wrong) as tools:
        await until_offered(tools, "far_add")
        assert (await call(tools, "far_header", name="x-key")).value == {"result": "k"}
        assert not [name for name in names(tools) if name.startswith(("nobody", "wrong"))]


async def test_the_end_comes_though_a_library_loses_it_and_waits_for_a_server(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = asyncio.Event()

    @asynccontextmanager
    async def lossy(_: object) -> AsyncIterator[mcp_http.Streams]:
        tried.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        raise ExceptionGroup("the connection", [OSError()])
        yield

    monkeypatch.setattr(mcp_http, "open_http", lossy)
    async with asyncio.timeout(PATIENCE), opened(nobody={"url": f"http://{LOOPBACK}:9/mcp"}):
        await tried.wait()


async def test_a_server_that_does_not_answer_the_end_of_its_session_delays_nothing(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_http, "_END_SECONDS", 0.1)
    over = asyncio.Event()
    requests: list[str] = []
    served: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.extend(task for task in [asyncio.current_task()] if task)
        with suppress(asyncio.IncompleteReadError, ConnectionError), closing(writer):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                size = re.search(r"content-length: (\d+)", head)
                body = await reader.readexactly(int(size[1])) if size else b"{}"
                requests.append(head.split()[0])
                asked = json.loads(body)
                result: dict[str, object] = {}
                if asked.get("method") == "initialize":
                    about = {"name": "s", "version": "1"}
                    result = {"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": about}
                elif requests[-1] != "post":
                    await over.wait()
                text = json.dumps({"jsonrpc": "2.0", "id": asked.get("id"), "result": result})
                more = f"content-type: application/json\r\nmcp-session-id: s\r\ncontent-length: {len(text)}\r\n\r\n"
                writer.write(f"HTTP/1.1 200 OK\r\n{more}{text}".encode())

    server = await asyncio.start_server(serve, LOOPBACK, 0)
    try:
        port = server.sockets[0].getsockname()[1]
        async with asyncio.timeout(PATIENCE), opened(hung={"url": f"http://{LOOPBACK}:{port}/mcp"}):
            # Its list of tools is none, so that the connection ends, and is made again.
            while requests.count("delete") < 2:
                await asyncio.sleep(0.02)
    finally:
        over.set()
        server.close()
        await asyncio.wait(served, timeout=PATIENCE)


@pytest.mark.parametrize("kind", ["program", "address"])
async def test_a_call_that_takes_too_long_ends_in_time_and_others_do_not_wait(
    opened: Open, tmp_path: Path, http_server: ServerProcess, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    entry = tool_program(tmp_path / "counter") if kind == "program" else at(http_server)
    limit(monkeypatch, "calc", 1.0)
    async with opened(calc=entry, other=entry) as tools:
        await until_offered(tools, "calc_wait", "other_add")
        slow = await call(tools, "calc_wait", seconds=60)
        assert slow.failed
        assert "did not answer within 1 s" in str(slow.value)
        waiting = asyncio.create_task(call(tools, "other_wait", seconds=60), name="waiting")
        assert (await call(tools, "other_add", a=1, b=2)).value == {"result": 3}
        assert not waiting.done()
        waiting.cancel()


@pytest.mark.parametrize("kind", ["program", "address"])
async def test_a_long_answer_is_cut_and_a_huge_one_refused(
    opened: Open, tmp_path: Path, http_server: ServerProcess, kind: str
) -> None:
    entry = tool_program(tmp_path / "counter") if kind == "program" else at(http_server)
    async with opened(calc=entry) as tools:
        await until_offered(tools, "calc_large")
        long = await call(tools, "calc_large", size=200_000)
        assert not long.failed
        assert len(str(long.value)) < 9_000
        huge = await call(tools, "calc_large", size=4_000_000)
        assert huge.failed
        assert (await call(tools, "calc_add", a=1, b=2)).value == {"result": 3}


async def test_a_huge_answer_in_one_piece_is_refused_too(opened: Open, tmp_path: Path) -> None:
    with running(tool_server(free_port(), tmp_path, "json")) as server:
        async with opened(far=at(server)) as tools:
            await until_offered(tools, "far_large")
            assert len(str((await call(tools, "far_large", size=200_000)).value)) < 9_000
            huge = await call(tools, "far_large", size=4_000_000)
            assert huge.failed
            assert "too large" in str(huge.value)
            assert (await call(tools, "far_add", a=1, b=2)).value == {"result": 3}


async def test_noise_between_the_messages_of_a_program_is_left_out(opened: Open, tmp_path: Path) -> None:
    async with opened(calc=tool_program(tmp_path / "counter")) as tools:
        await until_offered(tools, "calc_babble")
        assert (await call(tools, "calc_babble", lines=500)).value == {"result": "babbled"}


@pytest.mark.parametrize("vice", ["mute", "huge", "endless", "vanishing", "junk", "flood"])
async def test_a_bad_server_spoils_only_its_own_calls(
    opened: Open, http_server: ServerProcess, monkeypatch: pytest.MonkeyPatch, vice: str
) -> None:
    if vice in ("mute", "endless", "flood"):
        limit(monkeypatch, "bad", 2.0)
    async with opened(bad=rude_program(vice), good=at(http_server)) as tools:
        await until_offered(tools, "bad_act", "good_add")
        async with asyncio.TaskGroup() as group:
            bad = group.create_task(call(tools, "bad_act"), name="bad")
            good = group.create_task(call(tools, "good_add", a=1, b=2), name="good")
        assert good.result().value == {"result": 3}
        assert bad.result().failed == (vice != "junk")
        assert (await call(tools, "good_add", a=3, b=4)).value == {"result": 7}


@pytest.mark.parametrize("vice", ["deaf", "crash"])
async def test_a_server_that_never_speaks_keeps_nobody_waiting(
    opened: Open, tmp_path: Path, http_server: ServerProcess, vice: str
) -> None:
    lost = {"command": str(tmp_path / "no such program")}
    async with opened(bad=rude_program(vice), lost=lost, good=at(http_server)) as tools:
        await until_offered(tools, "good_add")
        assert not [name for name in names(tools) if name.startswith(("bad", "lost"))]
        assert (await call(tools, "bad_act")).failed


async def test_too_many_calls_of_one_server_are_refused_at_once(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_server, "MOST_CALLS", 2)
    async with opened(PATIENCE, calc=tool_program(tmp_path / "counter")) as tools:
        await until_offered(tools, "calc_wait")
        async with asyncio.TaskGroup() as group:
            waiting = [group.create_task(call(tools, "calc_wait", seconds=0.5), name="waiting") for _ in range(5)]
        results = [task.result() for task in waiting]
        assert sum(result.failed for result in results) == 3
        assert all("too many calls" in str(result.value) for result in results if result.failed)


def runs(pid: int) -> bool:
    """Return whether a process runs; one that has ended may not have been collected yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("vice", ["stubborn", "deaf", "mute"])
async def test_every_program_ends_with_the_tools(opened: Open, monkeypatch: pytest.MonkeyPatch, vice: str) -> None:
    monkeypatch.setattr(mcp_stdio, "_END_SECONDS", 0.3)
    started: list[int] = []
    start = mcp_stdio._start

    async def watch(program: Any) -> Any:
        process = await start(program)
        started.append(process.pid)
        return process

    monkeypatch.setattr(mcp_stdio, "_start", watch)
    async with asyncio.timeout(PATIENCE), opened(bad=rude_program(vice)) as tools:
        if vice != "deaf":
            await until_offered(tools, "bad_act")
        while not started:
            await asyncio.sleep(0.01)
    assert started
    async with asyncio.timeout(PATIENCE):
        while any(map(runs, started)):
            await asyncio.sleep(0.01)
