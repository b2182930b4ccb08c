"""The benchmark runs and carries packets both ways; what it costs is never asserted."""

import asyncio
from pathlib import Path

import pytest

from fleet.workbench.bench.udp import UdpExperiment
from tests.support.bench_command import run_bench

STREAMS = 5
LIMIT = 240


def test_packets_are_carried_both_ways_by_a_real_edge(tmp_path: Path) -> None:
    plan = ("--streams", str(STREAMS), "--no-codecs", "--seconds", "0.3", "--repeats", "1")
    printed, found = run_bench(tmp_path, "udp", *plan)
    assert "one up and" in printed
    assert {"cpu", "cores", "python", "date"} <= found["machine"].keys()
    [bare_path], [case] = found["bare_paths"], found["cases"]
    assert bare_path["both"]["up"] > 0 < bare_path["both"]["down"]
    assert (case["heard"], case["lost"]) == (STREAMS, 0)
    assert case["up"]["up"] > 0 == case["up"]["down"]
    assert case["down"]["down"] > 0 == case["down"]["up"]
    assert case["both"]["up"] > 0 < case["both"]["down"]
    assert case["idle"]["up"] == case["idle"]["down"] == 0
    assert case["both"]["us"]["least"] > 0
    assert case["late_ms"]["most"] >= case["late_ms"]["p99"] >= case["late_ms"]["p50"]
    assert not case["both"]["dropped"]


@pytest.mark.gapless
async def test_real_codecs_carry_packets_both_ways() -> None:
    async with asyncio.timeout(LIMIT):
        found = await UdpExperiment(streams=[STREAMS], codecs=[True], seconds=0.3, repeats=1).measure(lambda what: None)
    [case] = found.cases
    assert case.codecs
    assert case.heard == STREAMS
    assert case.both.up > 0
    assert case.both.down > 0
