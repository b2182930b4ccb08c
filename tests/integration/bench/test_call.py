"""The benchmark of tool calls runs against real servers; what a call costs is never asserted."""

import asyncio
import json
import sys
from pathlib import Path

from fleet.bench.call import Plan, measure

LIMIT = 60


async def test_turns_call_tools_of_connected_devices() -> None:
    async with asyncio.timeout(LIMIT):
        [case] = await measure(Plan([5], talking=5, rate=10, seconds=0.4, repeats=1), lambda what: None)
    for turn in (case.turn, case.single, case.many):
        assert turn.count > 0
        assert turn.lost == 0
    assert case.low_ms.p50 > 0, "a turn waited for the outcome of its call"


async def test_command_prints_a_table_and_writes_json(tmp_path: Path) -> None:
    file = tmp_path / "call.json"
    command = ("call", "--devices", "3", "--connected", "3", "--rate", "5", "--seconds", "0.4", "--repeats", "1")
    async with asyncio.timeout(LIMIT):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "fleet.bench", *command, "--json", str(file), stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
    assert process.returncode == 0
    assert "one more call" in out.decode()
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["benchmark"] == "call"
    [case] = found["cases"]
    assert {"median", "least", "most"} == case["call_us"]["worker"].keys()
