"""Checks of bootstrap and activation against servers that are wrong in one thing."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response

from fleet.adapters.net.http.server import HttpServer
from fleet.ground.tasks import running
from fleet.workbench.conformance.checks import select
from fleet.workbench.conformance.context import Setup
from fleet.workbench.conformance.provision import Binding, Images
from fleet.workbench.conformance.results import Result
from fleet.workbench.conformance.run import Task, run_one
from fleet.workbench.sim.profiles.profile import find_profile

MQTT = {
    "endpoint": "voice.example.org:1883",
    "client_id": "x",
    "username": "x",
    "password": "x",
    "publish_topic": "up/x",
    "keepalive": 30,
}
GOOD = {"mqtt": MQTT, "server_time": {"timestamp": 1, "timezone_offset": 0}}
Answer = Callable[[], Response]


@asynccontextmanager
async def serving(ota: Answer, activate: Answer) -> AsyncIterator[str]:
    app = FastAPI()

    async def boot() -> Response:
        return ota()

    async def ask() -> Response:
        return activate()

    app.add_api_route("/ota/", boot, methods=["POST"])
    app.add_api_route("/ota", boot, methods=["POST"])
    app.add_api_route("/ota/activate", ask, methods=["POST"])
    server = HttpServer(app, "127.0.0.1", 0)
    async with running("server", server.run):
        yield f"http://127.0.0.1:{server.port}/ota/"


async def judge(id_: str, ota: Answer, activate: Answer = lambda: Response(status_code=202), **setup: Any) -> Result:
    async def bind(_: str) -> None:
        return

    (check,) = select([id_])
    async with asyncio.timeout(240), serving(ota, activate) as url:
        return await run_one(Task(check, find_profile("P1")), Setup(url, binding=Binding(url, bind), **setup))


def told(changes: dict[str, Any] | None = None, status: int = 200, **more: Any) -> Answer:
    mqtt = {name: value for name, value in {**MQTT, **(changes or {})}.items() if value is not None}
    return lambda: JSONResponse({**GOOD, "mqtt": mqtt, **more}, status)


def invited(code: Callable[[], str] = lambda: "123456", challenge: str = "c" * 64) -> Answer:
    section = {"message": "m", "challenge": challenge}
    return lambda: JSONResponse({"server_time": GOOD["server_time"], "activation": {**section, "code": code()}})


@pytest.mark.parametrize("id_", ["O1", "O2", "O3", "O4", "O8", "O9", "O10"])
async def test_a_server_that_answers_rightly_passes(id_: str) -> None:
    result = await judge(id_, told())
    assert result.outcome == "passed", result.seen


@pytest.mark.parametrize(
    ("id_", "ota", "seen"),
    [
        ("O1", told({"keepalive": "30"}), "keepalive"),
        ("O1", told({"password": None}), "password"),
        ("O1", told(filler="x" * 7000), "ota-size"),
        ("O2", told({"endpoint": "mqtt://voice.example.org"}), "endpoint"),
        ("O4", told({"a_key_that_is_too_long": "x"}), "a_key_that_is_too_long"),
        ("O5", told(firmware={"version": "9.0.0", "url": "http://x/"}), "9.0.0 is offered"),
        ("O10", told(status=201), "status 201"),
    ],
)
async def test_what_a_device_cannot_use_is_found(id_: str, ota: Answer, seen: str) -> None:
    result = await judge(id_, ota)
    assert result.outcome == "failed"
    assert seen in result.seen


async def test_a_header_that_4g_boards_do_not_find_is_found() -> None:
    async def give(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nimage")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(give, "127.0.0.1", 0) as other:
        image = {"version": "9.0.0", "url": f"http://127.0.0.1:{other.sockets[0].getsockname()[1]}/image.bin"}
        result = await judge("O7", lambda: JSONResponse({**GOOD, "firmware": image}), images=Images("board/9.0.0"))
    assert result.outcome == "failed"
    assert "no Content-Length, spelled so" in result.seen


CODES = itertools.count(100_000)


@pytest.mark.parametrize(
    ("id_", "ota", "activate", "seen"),
    [
        ("A1", invited(lambda: "12AB56"), 202, "digits"),
        ("A1", invited(challenge=""), 202, "challenge"),
        ("A2", invited(), 200, "status 200"),
        ("A3", invited(), 202, "status 202"),
        ("A3", invited(), 200, "code and challenge"),
        ("A6", invited(), 200, "status 200"),
        ("A8", invited(lambda: str(next(CODES))), 202, "another code"),
    ],
)
async def test_an_activation_that_leads_nowhere_is_found(id_: str, ota: Answer, activate: int, seen: str) -> None:
    result = await judge(id_, ota, lambda: Response(status_code=activate))
    assert result.outcome == "failed"
    assert seen in result.seen


async def test_without_a_server_for_bound_devices_activation_is_skipped() -> None:
    (check,) = select(["A1"])
    result = await run_one(Task(check, find_profile("P1")), Setup("http://nowhere.invalid/"))
    assert result.outcome == "skipped"
