"""`scripts/bench` shows its commands, and says what is wrong with a file before it measures anything."""

import asyncio
import sys
from pathlib import Path

import pytest


async def bench(*words: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.benchmarks", *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(120):
        printed, _ = await process.communicate()
    return process.returncode, printed.decode()


async def test_benchmarks_of_roles_and_of_servers_are_commands_of_one_program() -> None:
    code, printed = await bench("--help")
    assert code == 0
    for command in ("hello", "udp", "all", "peer", "plots"):
        assert f" {command} " in printed, command


@pytest.mark.parametrize("words", [("all", "--compare"), ("plots",)], ids=["compare", "plots"])
async def test_a_missing_file_is_a_wrong_argument(words: tuple[str, ...], tmp_path: Path) -> None:
    code, printed = await bench(*words, str(tmp_path / "missing.json"))
    assert code == 2
    assert "Invalid value" in printed
