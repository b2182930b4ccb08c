"""`scripts/bench` as a process with more patience, and what it printed and wrote."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

LIMIT = 480


async def run_bench(folder: Path, *words: str) -> tuple[str, dict[str, Any]]:
    """Return what a benchmark printed, and its figures."""
    file = folder / "figures.json"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.patient_module", "tests.benchmarks", *words, "--json", str(file)),
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
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    assert found["benchmark"] == words[0]
    return printed.decode(), found
