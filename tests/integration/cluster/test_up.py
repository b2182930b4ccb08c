"""`scripts/cluster up` and `restart`, as an operator runs them."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from fleet.ground.settings import Settings, variable
from fleet.workbench.cluster.control import is_running
from fleet.workbench.conformance.own_server import steered
from fleet.workbench.conformance.steering.server import Steering
from tests.support.forked_programs import fork_programs
from tests.support.patient_module import COMMAND

LIMIT = 480
UP = "it is up"


@pytest.fixture(autouse=True)
def _programs_are_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    fork_programs(monkeypatch)


class Command:
    """`python -m fleet.workbench.cluster` with some words and more patience; `output` is what it has said."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process, self.output = process, ""

    async def until(self, words: str) -> None:
        """Return when it has said this.

        Raises:
            AssertionError: It ended before.
        """
        assert self.process.stdout is not None
        while words not in self.output:
            line = (await self.process.stdout.readline()).decode()
            assert line, f"it ended: {self.output}"
            self.output += line

    async def end(self) -> int:
        """Return the exit code, once it has ended."""
        assert self.process.stdout is not None
        self.output += (await self.process.stdout.read()).decode()
        return await self.process.wait()

    def pid_of(self, name: str) -> int:
        """Return a process of the table that it shows."""
        found = re.search(rf"{name}\W+(\d+)", self.output)
        assert found, self.output
        return int(found[1])


@asynccontextmanager
async def command(*words: str, data: Path, settings: dict[str, str] | None = None) -> AsyncIterator[Command]:
    known = {variable(name) for name in Settings.model_fields}
    outside = {name: value for name, value in os.environ.items() if name not in known}
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *("fleet.workbench.cluster", *words, "--data", str(data)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**outside, "COLUMNS": "200", **(settings or {})},
    )
    try:
        yield Command(process)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def run(*words: str, data: Path) -> tuple[int, str]:
    """Run a command to its end; return its exit code and what it said."""
    async with command(*words, data=data) as one:
        return await one.end(), one.output


async def test_a_cluster_runs_restarts_tells_of_the_dead_and_ends(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with asyncio.timeout(LIMIT), Steering("127.0.0.1", 0) as models:
        settings = {variable(name): str(value) for name, value in steered(models.url).items()}
        small = ("--workers", "1", "--edges", "1", "--any-ports")
        async with command("up", *small, data=data, settings=settings) as up:
            await up.until(UP)
            for name in ("Mosquitto", "Redis", "worker-1", "edge-1", "gateway-1", "api-1"):
                assert up.pid_of(name)
            assert "demo model" not in up.output
            code, output = await run("up", *small, data=data)
            assert (code, "runs in" in output) == (2, True)

            os.kill(up.pid_of("api-1"), signal.SIGKILL)
            await up.until("api-1 ended: exit code -9")
            code, output = await run("restart", "api", data=data)
            assert (code, "api-1: ready after" in output) == (0, True), output
            assert "worker-1" not in output

            up.process.send_signal(signal.SIGINT)
            assert await up.end() == 0, up.output
        assert not await is_running(data)
    with pytest.raises(ProcessLookupError):
        os.kill(up.pid_of("worker-1"), 0)


async def test_a_restart_where_nothing_runs_is_refused_with_the_reason(tmp_path: Path) -> None:
    async with asyncio.timeout(LIMIT):
        code, output = await run("restart", data=tmp_path)
        assert code == 2
        assert "no cluster runs" in output


async def test_an_unknown_role_is_named(tmp_path: Path) -> None:
    async with asyncio.timeout(LIMIT):
        code, output = await run("restart", "broker", data=tmp_path)
        assert code == 2
        assert "broker" in output
