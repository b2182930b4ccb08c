"""The benchmark runs and carries packets both ways; what it costs is never asserted."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from fleet.bench.udp import Plan, measure

STREAMS = 5
LIMIT = 60


async def test_packets_are_carried_both_ways_by_a_real_edge() -> None:
    done: list[str] = []
    async with asyncio.timeout(LIMIT):
        found = await measure(Plan([STREAMS], [False], seconds=0.3, repeats=2), done.append)
    [floor], [case] = found.floors, found.cases
    assert floor.both.up > 0
    assert floor.both.down > 0
    assert case.heard == STREAMS
    assert case.lost == 0
    assert case.up.up > 0 == case.up.down
    assert case.down.down > 0 == case.down.up
    assert case.both.up > 0
    assert case.both.down > 0
    assert case.idle.up == case.idle.down == 0
    assert case.both.us.least > 0
    assert case.late_ms.most >= case.late_ms.p99 >= case.late_ms.p50
    assert not case.both.dropped
    assert any("both ways" in what for what in done)


@pytest.mark.speech
async def test_real_codecs_carry_packets_both_ways() -> None:
    async with asyncio.timeout(LIMIT):
        found = await measure(Plan([STREAMS], [True], seconds=0.3, repeats=1), lambda what: None)
    [case] = found.cases
    assert case.codecs
    assert case.heard == STREAMS
    assert case.both.up > 0
    assert case.both.down > 0


async def test_command_prints_a_table_and_writes_json(tmp_path: Path) -> None:
    file = tmp_path / "udp.json"
    command = ("udp", "--streams", "3", "--no-codecs", "--seconds", "0.2", "--repeats", "1", "--json", str(file))
    async with asyncio.timeout(LIMIT):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "fleet.bench", *command, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
    assert process.returncode == 0
    assert "one up and" in out.decode()
    found = json.loads(file.read_text(encoding="utf-8"))
    assert {"cpu", "cores", "python", "date"} <= found["machine"].keys()
    assert found["plan"]["streams"] == [3]
    [case] = found["cases"]
    assert {"median", "least", "most"} == case["both"]["us"].keys()
    assert {"p50", "p99", "most"} == case["late_ms"].keys()
