from dataclasses import replace

from rich.console import Console

from fleet.workbench.bench.figures import Percentiles, Spread
from fleet.workbench.bench.udp import BarePathResult, Phase, UdpFigures, UdpResult
from fleet.workbench.bench.udp_table import judge, remarks, show_udp

PHASE = Phase(Spread(12, 11, 13), Spread(4, 4, 4), up=100, down=100, on_rate=1.0, load_percent=5, dropped={})
CASE = UdpResult(200, False, PHASE, PHASE, PHASE, PHASE, Percentiles(1, 2, 3), heard=200, lost=0)


def test_case_without_faults_has_no_remarks() -> None:
    assert remarks(CASE) == []


def test_everything_that_makes_figures_doubtful_is_said() -> None:
    overloaded = replace(PHASE, on_rate=0.5, dropped={"queue_full": 7})
    told = "\n".join(remarks(replace(CASE, both=overloaded, heard=199, lost=3)))
    assert "199 devices" in told
    assert "3 packets did not reach" in told
    assert "50%" in told
    assert "7 queue_full" in told


def test_mark_is_judged_only_where_it_applies() -> None:
    assert [verdict.split(":")[0] for verdict in judge(CASE, 6)] == ["met", "met"]
    assert "2.0 times" in judge(CASE, 6)[0]
    dear = replace(CASE, both=replace(PHASE, us=Spread(16, 15, 17)), late_ms=Percentiles(1, 5, 9))
    assert [verdict.split(":")[0] for verdict in judge(dear, 0)] == ["MISSED", "MISSED"]
    assert judge(replace(CASE, codecs=True), 6) == judge(replace(CASE, streams=50), 6) == []


def test_table_holds_floor_and_cases() -> None:
    console = Console(record=True, width=120)
    show_udp(console, UdpFigures([BarePathResult(200, PHASE)], [CASE, replace(CASE, codecs=True)]))
    text = console.export_text()
    assert all(word in text for word in ("bare path", "none", "real", "12.0", "(11.0-13.0)"))
