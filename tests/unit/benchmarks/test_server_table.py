"""Servers side by side, for people."""

import io

from rich.console import Console

from fleet.workbench.bench.bootstrap import PARTS as BOOTSTRAP
from fleet.workbench.bench.bootstrap import BootstrapResult
from fleet.workbench.bench.figures import Percentiles, Spread
from fleet.workbench.bench.testbed import Cost, Window
from fleet.workbench.bench.turn import PARTS as TURN
from fleet.workbench.bench.turn import TurnResult
from fleet.workbench.bench.udp import UdpFigures
from tests.benchmarks.all import AllFigures, show_all
from tests.benchmarks.operations import CONNECT, UPLINK, Found
from tests.benchmarks.peer import FLEET, PEER, UP, merge
from tests.benchmarks.scale import ScaleResult
from tests.benchmarks.server_table import show_scale, show_servers


def window(us: float, lost: int = 0) -> Window:
    cpu = us * 100 / 1e6
    return Window(2.0, {"worker": cpu / 2, "all": cpu}, 100, lost, [1.0, 2.0, 3.0])


def console() -> Console:
    return Console(width=160, record=True, file=io.StringIO())


def cells(text: str) -> list[list[str]]:
    """Return the rows of all tables that have a first cell, without their heads."""
    rows = ([cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines())
    return [row for row in rows if row and row[0]]


def test_each_server_has_its_ratio_to_the_peer() -> None:
    both = {CONNECT: window(300), UPLINK: window(10)}
    found = [
        merge(FLEET, [Found(both, {"all": 4000.0}), Found({**both, CONNECT: window(500)}, {"all": 5000.0})]),
        merge(UP, [Found({CONNECT: window(900, lost=7)}, {"all": 6000.0})]),
        merge(PEER, [Found({CONNECT: window(200), UPLINK: window(40)}, {"all": 9000.0})]),
    ]
    printed = console()
    show_servers(printed, found)
    text = printed.export_text()
    [costs, times] = [row for row in cells(text) if row[0] == CONNECT]
    assert costs[1:6] == ["400", "900", "200", "2.00", "4.50"]
    assert times[1:] == ["50/s: 2.0 / 3.0", "50/s: 2.0 / 3.0, 7 lost", "50/s: 2.0 / 3.0"]
    assert "(300-500)" in text
    [packets, _] = [row for row in cells(text) if row[0] == UPLINK]
    assert packets[1:6] == ["10.0", "-", "40.0", "0.25", "-"], "fleet up carried none"


def test_more_devices_and_shards_are_rows() -> None:
    cost = Cost({part: Spread(50, 40, 60) for part in ("all", "worker", "edge")}, Percentiles(1, 2, 3), 10, 0)
    printed = console()
    show_scale(printed, [ScaleResult(100_000, 256, cost, cost, dict(cost.us))])
    assert cells(printed.export_text()) == [["100,000", "256", "50 / 50", "50.0", "50 / 50"]]


def test_everything_is_shown_after_the_servers() -> None:
    cost = Cost({part: Spread(50, 40, 60) for part in ("all", "worker", "edge")}, Percentiles(1, 2, 3), 10, 0)
    figures = AllFigures(
        servers=[merge(FLEET, [Found({CONNECT: window(300)}, {"all": 4000.0})])],
        udp=UdpFigures([], []),
        bootstrap=[BootstrapResult(50, 49.5, 99, {}, Percentiles(1, 2, 3), cell(*BOOTSTRAP), {"api": 0.5})],
        turn=[TurnResult(7, 70, 3.5, 3.5, *[Percentiles(1, 2, 3)] * 3, cell(*TURN), 0)],
        scale=[ScaleResult(1000, 16, cost, cost, dict(cost.us))],
    )
    printed = console()
    show_all(printed, figures)
    text = printed.export_text()
    for heading in ("an operation", "all processes / the worker", "a packet", "of a bootstrap", "added to a turn"):
        assert heading in text, heading


def cell(*parts: str) -> dict[str, Spread]:
    return {part: Spread(50, 40, 60) for part in parts}
