"""`scripts/bench` in this process or in one of its own, and what it printed and wrote."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

LIMIT = 480


def run_bench(folder: Path, *words: str) -> tuple[str, dict[str, Any]]:
    """Return what a benchmark printed, and its figures."""
    # A process of its own takes two seconds of a core to import all benchmarks. Not where every process reads it.
    from tests.benchmarks.__main__ import app

    done = CliRunner().invoke(app, [*words, "--json", str(folder / "figures.json")])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output, _figures(folder, words[0])


async def start_bench(folder: Path, *words: str) -> tuple[str, dict[str, Any]]:
    """Do the same with a process of its own, as `scripts/bench` does."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.benchmarks", *words, "--json", str(folder / "figures.json")),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(LIMIT):
            printed, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.terminate()
    assert process.returncode == 0, printed.decode()
    return printed.decode(), _figures(folder, words[0])


def _figures(folder: Path, benchmark: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "figures.json").read_text(encoding="utf-8"))
    assert found["benchmark"] == benchmark
    return found
