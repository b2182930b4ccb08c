import io

import pytest
from rich.console import Console

from fleet.workbench.bench.bootstrap import PARTS, BootstrapResult
from fleet.workbench.bench.bootstrap_table import show_bootstrap
from fleet.workbench.bench.figures import Percentiles, Spread


def case(
    asked: float = 500, rate: float = 499, p99: float = 200, refused: dict[str, int] | None = None
) -> BootstrapResult:
    us = dict.fromkeys(PARTS, Spread(1100, 1000, 1300))
    cores = dict.fromkeys(PARTS, 0.55)
    return BootstrapResult(asked, rate, 4500, refused or {}, Percentiles(20, p99, 300), us, cores)


def shown(found: BootstrapResult) -> str:
    console = Console(file=io.StringIO(), width=120)
    show_bootstrap(console, [found])
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_figures_are_shown() -> None:
    text = shown(case())
    assert "1100" in text and "(1000-1300)" in text
    assert "met: p99 200 ms at 500 a second" in text


@pytest.mark.parametrize("bad", [case(p99=5000), case(refused={"503": 1}), case(rate=300)])
def test_a_herd_that_waits_or_is_refused_misses_the_mark(bad: BootstrapResult) -> None:
    assert "MISSED" in shown(bad)


def test_another_rate_has_no_mark() -> None:
    text = shown(case(asked=50, rate=50))
    assert "met" not in text and "MISSED" not in text


def test_what_was_not_answered_is_told() -> None:
    assert "only 300 were answered, with 0.55 of a core for the api" in shown(case(rate=300))
    assert "2 503, 1 TimeoutError" in shown(case(refused={"503": 2, "TimeoutError": 1}))
