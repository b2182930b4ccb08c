import dataclasses
import io

from rich.console import Console

from fleet.workbench.bench.figures import Percentiles, Spread
from fleet.workbench.bench.turn import PARTS, TurnResult
from fleet.workbench.bench.turn_table import show_turn

CASE = TurnResult(
    at_once=100,
    turns=345,
    rate=39.0,
    direct_rate=40.0,
    first_ms=Percentiles(2.1, 8.2, 9.0),
    last_ms=Percentiles(3.3, 9.4, 9.9),
    direct_ms=Percentiles(0.1, 0.7, 1.0),
    us=dict.fromkeys(PARTS, Spread(9876.0, 9000.0, 9999.0)),
    lost=6,
)


def shown(case: TurnResult) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    show_turn(console, [case])
    return console.export_text()


def test_every_figure_is_shown() -> None:
    text = shown(CASE)
    for figure in ("100", "345", "(39)", "2.1", "8.2", "3.3", "9.4", "0.1", "0.7", "9876", "(9000-9999)", " 6 "):
        assert figure in text
    assert "cores enough" not in text


def test_figures_of_a_machine_that_was_too_busy_say_so() -> None:
    assert "12.0 turns a second, 40.0 without fleet" in shown(dataclasses.replace(CASE, rate=12.0))
