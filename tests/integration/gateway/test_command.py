"""`fleet gateway` as a process with more patience, and nothing set but the model's address and a port."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from fleet.ground.tasks import running
from fleet.workbench.demo_llm.server import DemoLlmServer
from tests.support.gateway_stage import UNHURRIED, Client
from tests.support.ports import free_port
from tests.support.process import accepts

START_SECONDS = 240.0
STOP_SECONDS = 240.0
_OURS = ("FLEET_", "LLM_", "CLOUD_", "MCP_", "CLIENT_", "ASR_", "TTS_", "VISION_")
BATTERY = {"name": "device.get_battery", "description": "获取设备当前电量百分比", "parameters": {"type": "object"}}


class Processes:
    """Gateways on this machine with one home."""

    def __init__(self, home: Path) -> None:
        self._outside = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        self._outside["HOME"] = str(home)
        self._running: list[subprocess.Popen[str]] = []

    def start(self, command: str = "gateway", **settings: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.patient_module", "fleet", command],
            env=self._outside | settings,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._running.append(process)
        return process

    async def serve(self, url: str) -> int:
        """Start a gateway and wait until it takes clients; return its port."""
        port = free_port()
        process = self.start(LLM_BASE_URL=url, CLOUD_PORT=str(port))
        async with asyncio.timeout(START_SECONDS):
            while not accepts(port):
                assert process.poll() is None, process.communicate()[1]
                await asyncio.sleep(0.05)
        return port

    def end(self) -> list[int]:
        """Ask all to end, the newest first; return their exit codes."""
        codes = []
        for process in reversed(self._running):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                process.communicate(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
            codes.append(process.returncode)
        self._running.clear()
        return codes


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    started = Processes(tmp_path)
    yield started
    started.end()


@pytest.fixture
async def model() -> AsyncIterator[str]:
    server = DemoLlmServer("127.0.0.1", 0)
    async with running("demo model", server.run):
        await server.started.wait()
        yield f"http://127.0.0.1:{server.port}/v1"


async def answer(client: Client, result: Any) -> str:
    """Answer all callbacks with a result until the reply comes; return it."""
    while (frame := await client.next())["type"] != "llm_response":
        assert frame["type"] != "error", frame
        if frame["type"] == "tool_callback":
            await client.send("tool_result", call_id=frame["call_id"], result=result, success=True)
    return str(frame["content"])


async def test_session_goes_on_at_a_second_process_that_shares_the_embedded_redis(
    processes: Processes, model: str
) -> None:
    first, second = await processes.serve(model), await processes.serve(model)
    async with connect(f"ws://127.0.0.1:{first}", **UNHURRIED) as socket:
        client = Client(socket)
        session = (await client.next())["data"]["session_id"]
        await client.send("configure", enable_context=True)
        await client.send("register_tools", tools=[BATTERY])
        assert (await client.next())["count"] == 1
        await client.send("text_input", text="我的电量还剩多少？", session_id=session)
        assert "85" in await answer(client, {"level": 85, "charging": False})
        assert "device.get_battery" in [frame.get("tool_name") for frame in client.heard]
    async with connect(f"ws://127.0.0.1:{second}", **UNHURRIED) as socket:
        client = Client(socket)
        await client.next()
        await client.send("start_session", session_id=session)
        assert (await client.next())["data"]["session_id"] == session
        await client.send("text_input", text="你好")
        assert await answer(client, None)
    assert processes.end() == [0, 0]


async def fails(process: subprocess.Popen[str], words: str) -> None:
    """Wait until a command ends and check that it says why."""
    _, errors = await asyncio.to_thread(process.communicate, None, START_SECONDS)
    assert process.returncode == 2
    assert words in errors
    assert "Traceback" not in errors


async def test_what_is_missing_or_taken_is_told_in_a_line(processes: Processes, model: str) -> None:
    # Its Redis ends with it, so no other one may have begun to use that.
    await fails(processes.start(CLOUD_PORT="0"), "LLM_BASE_URL is missing")
    port = await processes.serve(model)
    async with connect(f"ws://127.0.0.1:{port}", **UNHURRIED) as socket:
        taken = processes.start(LLM_BASE_URL=model, CLOUD_PORT=str(port))
        others = {"FLEET_HTTP_PORT": "0", "FLEET_UDP_PORT": "0", "FLEET_MQTT_PORT": "0"}
        everything = processes.start("up", CLOUD_PORT=str(port), **others)
        expected = f"port {port} is taken; stop what uses it or set CLOUD_PORT"
        for process in (taken, everything):
            await fails(process, expected)
        assert json.loads(await socket.recv())["status"] == "connected"
