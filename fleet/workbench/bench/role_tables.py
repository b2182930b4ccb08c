"""Figures of the benchmarks of workers, for people."""

from collections.abc import Mapping, Sequence

from rich.console import Console

from fleet.workbench.bench import call, hello, turns
from fleet.workbench.bench.figures import Spread
from fleet.workbench.bench.machine import Machine
from fleet.workbench.bench.table_cells import cell, figures_table
from fleet.workbench.bench.testbed import PARTS, Cost

HELLO_US, CALL_US, REDIS_BYTES = 250.0, 200.0, 1024.0
"""What a worker should need for a hello and for a tool call, and Redis for a device that does nothing."""
_ENOUGH = 0.8
"""Part of the cores that turns must have got for their rate to mean much."""
_FIGURES = (*PARTS, "p50\nms", "p99", "lost")
_SHARED = "All of them share the cores of this machine, the one that plays the devices too."


def show_hello(console: Console, cases: Sequence[hello.HelloResult]) -> None:
    """Print what was measured."""
    table = figures_table("CPU in microseconds: median (least-most)", ("devices", "operation"), _FIGURES)
    for case in cases:
        known = f"{case.devices}\n({case.connected} connected)"
        rows = [("connect and tell tools", case.connect), ("hello", case.hello)]
        for number, (name, cost) in enumerate(rows):
            table.add_row(known if number == 0 else "", name, *_cells(cost.us), *_waits(cost))
        table.add_row("", "goodbye", *(f"{case.goodbye_us[part]:.0f}" for part in PARTS))
        table.add_row("", f"hello and goodbye, {hello.LOW_RATE:g}/s", *_cells(case.low.us), *_waits(case.low))
        table.add_row("", "at rest, % of a core", *(f"{100 * case.at_rest[part]:.1f}" for part in PARTS))
        idle = case.idle
        memory = {"worker": idle.worker, "redis": idle.redis, "broker": idle.broker}
        bytes_ = (f"{memory[part]:.0f}" if part in memory else "" for part in PARTS)
        table.add_row("", "bytes of an idle device", *bytes_, end_section=True)
    console.print(table)
    console.print(f"connect: presence, initialize, tools/list. {_SHARED}")
    for case in cases:
        console.print(f"{case.devices} devices: {_verdict(case.hello.us['worker'], HELLO_US, 'us of worker a hello')}")
        bare = case.idle.redis - case.idle.tools
        console.print(
            f"{case.devices} devices: {_judged(case.idle.redis <= REDIS_BYTES)}: {case.idle.redis:.0f} bytes of Redis"
            f" (mark: {REDIS_BYTES:g}), {case.idle.tools:.0f} of them its list of tools, {bare:.0f} all else"
        )


def show_call(console: Console, cases: Sequence[call.CallResult]) -> None:
    """Print what was measured."""
    table = figures_table("CPU in microseconds: median (least-most)", ("devices", "operation"), _FIGURES)
    for case in cases:
        known = f"{case.devices}\n({case.connected} connected)"
        table.add_row(known, "turn without a call", *_cells(case.turn.us), *_waits(case.turn))
        table.add_row("", "turn with one", *_cells(case.single.us), *_waits(case.single))
        table.add_row("", f"turn with {call.MANY}", *_cells(case.many.us), *_waits(case.many))
        low = case.low_ms
        waits = (f"{low.p50:.1f}", f"{low.p99:.1f}", "")
        table.add_row("", "one more call", *_cells(case.call_us), *waits, end_section=True)
    console.print(table)
    console.print(
        f"one more call: the difference of turns with {call.MANY} calls and with one, for each call; its times are"
        f" those at {call.LOW_RATE:g} turns a second, from the model's wish to the outcome. {_SHARED}"
    )
    for case in cases:
        console.print(f"{case.devices} devices: {_verdict(case.call_us['worker'], CALL_US, 'us of worker a call')}")


def show_turns(console: Console, cases: Sequence[turns.TurnsResult]) -> None:
    """Print what was measured."""
    table = figures_table("CPU of a turn in microseconds: median (least-most)", ("workers", "turns a second"), _FIGURES)
    for case in cases:
        rate = f"{case.turns.median:.0f}\n({case.turns.least:.0f}-{case.turns.most:.0f})"
        table.add_row(
            str(case.workers), rate, *_cells(case.us), f"{case.ms.p50:.1f}", f"{case.ms.p99:.1f}", f"{case.lost}"
        )
        table.add_row("", "cores", *(f"{case.cores[part]:.2f}" for part in PARTS), end_section=True)
    console.print(table)
    console.print(_SHARED)
    for case in cases:
        got = case.cores["all"] + case.cores["load"]
        if got < _ENOUGH * min(Machine.here().cores, 1 + case.workers):
            console.print(
                f"{case.workers} workers: all parts together got {got:.2f} cores; other work had the rest.",
                style="yellow",
            )
    if len(cases) > 1:
        first, last = cases[0], cases[-1]
        console.print(
            f"{last.workers} workers answer {last.turns.median / max(first.turns.median, 1e-9):.2f} times as many turns"
            f" as {first.workers}."
        )


def _cells(us: Mapping[str, Spread]) -> list[str]:
    return [cell(us[part]) for part in PARTS]


def _waits(cost: Cost) -> tuple[str, str, str]:
    return f"{cost.ms.p50:.1f}", f"{cost.ms.p99:.1f}", str(cost.lost)


def _verdict(found: Spread, mark: float, what: str) -> str:
    return f"{_judged(found.median <= mark)}: {found.median:.0f} {what} (mark: {mark:g})"


def _judged(met: bool) -> str:
    return "met" if met else "MISSED"
