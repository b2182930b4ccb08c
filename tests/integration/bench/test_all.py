"""All benchmarks run against real servers, and their result is drawn; what anything costs is never asserted."""

import asyncio
from pathlib import Path

import pytest

from fleet.workbench.bench.machine import Machine
from fleet.workbench.bench.result import as_json, members
from fleet.workbench.bench.udp import UdpFigures
from tests.benchmarks.all import AllExperiment, AllFigures
from tests.benchmarks.compare import read_figures
from tests.benchmarks.operations import CONNECT, DUPLEX, SATURATED, UPLINK, at_rate
from tests.benchmarks.peer import FLEET, UP, PeerExperiment, ServerResult
from tests.benchmarks.plots import draw_plots
from tests.benchmarks.scale import ScaleResult

LIMIT = 550
FEW, KNOWN, RATE, STREAMS = 10, 40, 10, 3


@pytest.mark.slow
async def test_all_benchmarks_are_one(tmp_path: Path) -> None:
    experiment = AllExperiment(
        connected=FEW,
        rates=[RATE],
        streams=STREAMS,
        devices=[FEW, KNOWN],
        shards=[16],
        requests=[20],
        turns=10,
        at_once=[1],
        seconds=0.4,
        repeats=1,
    )
    async with asyncio.timeout(LIMIT):
        found = await experiment.measure(lambda what: None)
    assert found.udp.cases and found.bootstrap and found.turn
    judge(found, tmp_path, [FEW, KNOWN])


async def test_every_operation_is_measured_and_drawn(tmp_path: Path) -> None:
    """The operations have no other test; what starts servers anew for each number of devices does the same."""
    servers = PeerExperiment(checkout=None, connected=FEW, rates=[RATE], streams=STREAMS, seconds=0.4, repeats=1)
    async with asyncio.timeout(LIMIT):
        found = await servers.measure(lambda _: None)
    by_name = {server.server: server for server in found}
    of_fleet = by_name[FLEET].operations
    hello = of_fleet[at_rate(RATE)]
    scale = ScaleResult(KNOWN, 16, hello, of_fleet[UPLINK], hello.us)
    judge(AllFigures(found, UdpFigures([], []), [], [], [scale]), tmp_path, [KNOWN])


def most(server: ServerResult, part: str) -> float:
    """What an operation costs a part at most; after idle time on a busy machine nothing is left of a cheap one."""
    return max(server.operations[what].us[part].median for what in (CONNECT, at_rate(RATE), SATURATED))


def judge(found: AllFigures, tmp_path: Path, known: list[int]) -> None:
    servers = {server.server: server for server in found.servers}
    assert set(servers) == {FLEET, UP}
    for server in servers.values():
        assert server.operations[CONNECT].count == FEW
        for what in (CONNECT, at_rate(RATE), SATURATED):
            assert (server.operations[what].lost, server.operations[what].ms.p50 > 0) == (0, True), what
        assert most(server, "all") > 0
        assert server.operations[UPLINK].count > 0
        assert "all" in server.memory
    assert most(servers[FLEET], "edge") > 0, "a real edge hears of the session"
    assert DUPLEX in servers[FLEET].operations
    assert [(case.devices, case.shards) for case in found.scale] == [(devices, 16) for devices in known]
    for case in found.scale:
        assert min(case.hello.us["all"].median, case.packet.us["edge"].median) >= 0
    file = tmp_path / "all.json"
    file.write_text(as_json({"benchmark": "all", "machine": Machine.here(), **members(found)}), encoding="utf-8")
    figures = read_figures(file)
    assert (
        figures[f"servers server={FLEET} operations {SATURATED} us worker"].median
        == servers[FLEET].operations[SATURATED].us["worker"].median
    )
    assert f"scale devices={KNOWN} shards=16 call_us worker" in figures
    assert [path.name for path in draw_plots(file, tmp_path / "pictures")] == ["rate.svg", "devices.svg"]
