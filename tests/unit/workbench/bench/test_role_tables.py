import io

from rich.console import Console

from fleet.workbench.bench import call, hello, turns
from fleet.workbench.bench.figures import Percentiles, Spread
from fleet.workbench.bench.role_tables import show_call, show_hello, show_turns
from fleet.workbench.bench.testbed import PARTS, Cost, Window

TIMES = Percentiles(1.5, 2.5, 3.5)


def cost(us: float) -> Cost:
    return Cost(dict.fromkeys(PARTS, Spread(us, us - 1, us + 1)), TIMES, count=10, lost=0)


def windows(us: float) -> list[Window]:
    return [Window(1.0, dict.fromkeys(PARTS, us * 10 / 1e6), 10, 0, [])]


def shown(show: object, cases: object) -> str:
    console = Console(width=160, record=True, file=io.StringIO())
    assert callable(show)
    show(console, cases)
    return console.export_text()


def case(us: float, redis: float) -> hello.HelloResult:
    return hello.HelloResult(
        devices=20_000,
        connected=1000,
        connect=cost(900),
        hello=cost(us),
        goodbye_us=dict.fromkeys(PARTS, 77.0),
        low=cost(400),
        idle=hello.Idle(redis=redis, tools=600, worker=0, broker=1000),
        at_rest=dict.fromkeys(PARTS, 0.01),
    )


def test_hello_is_judged_by_worker_and_redis() -> None:
    good, bad = shown(show_hello, [case(249, 1000)]), shown(show_hello, [case(251, 2000)])
    assert good.count("met:") == 2
    assert bad.count("MISSED:") == 2
    assert "20000" in good
    assert "600 of them its list of tools, 400 all else" in good


def test_call_costs_what_a_turn_with_more_calls_costs_more() -> None:
    spread = call.slope(windows(1000), windows(1000 + 8 * 150), "worker")
    assert round(spread.median, 6) == 150
    found = call.CallResult(100, 100, cost(700), cost(1000), cost(2200), dict.fromkeys(PARTS, spread), TIMES)
    text = shown(show_call, [found])
    assert "met: 150 us of worker a call" in text


def test_turns_of_more_workers_are_compared() -> None:
    found = [
        turns.TurnsResult(count, Spread(rate, rate, rate), dict.fromkeys(PARTS, 0.5), cost(900).us, TIMES, 0)
        for count, rate in ((1, 400.0), (2, 600.0))
    ]
    assert "2 workers answer 1.50 times as many turns as 1." in shown(show_turns, found)


def test_cost_of_windows_without_operations_is_no_error() -> None:
    empty = Cost.of([Window(1.0, dict.fromkeys(PARTS, 0.0), 0, 0, [])])
    assert empty.us["worker"].median == 0
    assert empty.ms == Percentiles(0.0, 0.0, 0.0)
