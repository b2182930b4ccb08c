import asyncio
import os
from pathlib import Path

import pytest

from fleet.ground.errors import ConfigError, Unavailable
from fleet.workbench.local_servers.process import find_program, run_program, run_to_end

LIMIT = 240


async def test_lines_reach_the_listener_and_the_log(tmp_path: Path) -> None:
    heard: list[str] = []
    both = asyncio.Event()

    def take(line: str) -> None:
        heard.append(line)
        if len(heard) == 2:
            both.set()

    command = ["sh", "-c", "echo one; echo zwei >&2; exec sleep 60"]
    async with asyncio.timeout(LIMIT), run_program("it", command, tmp_path / "log", take):
        await both.wait()
    assert heard == ["one", "zwei"]
    assert (tmp_path / "log").read_text() == "one\nzwei\n"


async def test_a_program_that_ends_by_itself_ends_the_block_and_says_why(tmp_path: Path) -> None:
    command = ["sh", "-c", "echo 'port 1 is taken'; echo '{}'; exit 3"]
    with pytest.RaisesGroup(pytest.RaisesExc(Unavailable, match="it ended: port 1 is taken")):
        async with asyncio.timeout(LIMIT), run_program("it", command, tmp_path / "log"):
            await asyncio.Event().wait()


async def test_what_it_writes_while_it_ends_is_kept(tmp_path: Path) -> None:
    up = asyncio.Event()
    command = ["sh", "-c", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done"]
    async with asyncio.timeout(LIMIT), run_program("it", command, tmp_path / "log", lambda _: up.set()):
        await up.wait()
    assert (tmp_path / "log").read_text() == "up\nbye\n"


async def test_a_program_that_does_not_want_to_end_is_killed(tmp_path: Path) -> None:
    up = asyncio.Event()
    command = ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done"]
    async with asyncio.timeout(LIMIT):
        async with run_program("it", command, tmp_path / "log", lambda _: up.set(), 0.2) as program:
            await up.wait()
    with pytest.raises(ProcessLookupError):
        os.kill(program.pid, 0)


async def test_run_to_end_returns_the_exit_code_or_that_it_took_too_long(tmp_path: Path) -> None:
    async with asyncio.timeout(LIMIT):
        assert await run_to_end("it", ["sh", "-c", "echo x; exit 4"], tmp_path / "log", LIMIT) == 4
        assert (tmp_path / "log").read_text() == "x\n"
        with pytest.raises(Unavailable, match="had not ended"):
            await run_to_end("it", ["sleep", "60"], tmp_path / "log", 0.1)


def test_a_program_that_is_not_installed_is_named() -> None:
    assert find_program("sh").endswith("/sh")
    with pytest.raises(ConfigError, match="`no-such-program` is not installed"):
        find_program("no-such-program")
