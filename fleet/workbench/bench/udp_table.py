"""Figures for people."""

from rich.console import Console

from fleet.workbench.bench.table_cells import cell, figures_table
from fleet.workbench.bench.udp import UdpFigures, UdpResult

MARK_US, MARK_LATE_MS, MARK_STREAMS = 15.0, 5.0, 200
"""What the edge should do without codecs: CPU for one packet up and one down, and the 99th percentile of lateness."""
_ENOUGH = 0.99


def show_udp(console: Console, found: UdpFigures) -> None:
    """Print what was measured."""
    figures = ("up", "down", "one up and\none down", "% core", "late p50\nms", "p99", "max", "load\n% core")
    title = "CPU of the edge in microseconds a packet: median (least-most)"
    table = figures_table(title, ("streams", "codecs"), ("idle\n% core", *figures))
    for bare_path in found.bare_paths:
        load = f"{bare_path.both.load_percent:.0f}"
        percent = f"{bare_path.both.cpu_percent.median:.1f}"
        table.add_row(
            str(bare_path.streams), "bare path", "", "", "", cell(bare_path.both.us), percent, "", "", "", load
        )
    for case in found.cases:
        late = case.late_ms
        table.add_row(
            str(case.streams),
            "real" if case.codecs else "none",
            f"{case.idle.cpu_percent.median:.2f}",
            cell(case.up.us),
            cell(case.down.us),
            cell(case.both.us),
            f"{case.both.cpu_percent.median:.1f}",
            *(f"{value:.1f}" for value in (late.p50, late.p99, late.most)),
            f"{case.both.load_percent:.0f}",
        )
    console.print(table)
    console.print(
        "bare path: receive, find the key, decrypt; encrypt, send; nothing else. It cannot be cheaper here now."
    )
    console.print("late: from when a packet was due to when it is sealed and sent, seen inside the edge.")
    for remark in (remark for case in found.cases for remark in remarks(case)):
        console.print(remark, style="yellow")
    bare_paths = {bare_path.streams: bare_path.both.us.median for bare_path in found.bare_paths}
    for case in found.cases:
        for verdict in judge(case, bare_paths.get(case.streams, 0.0)):
            console.print(verdict)


def remarks(case: UdpResult) -> list[str]:
    """Return what makes a case's figures doubtful."""
    what = f"{case.streams} streams {'with' if case.codecs else 'without'} codecs"
    found = [f"{what}: only {case.heard} devices heard audio under their key"] if case.heard < case.streams else []
    if case.lost:
        found.append(f"{what}: {case.lost} packets did not reach the devices")
    for name, phase in (("up", case.up), ("both", case.both), ("down", case.down)):
        if phase.on_rate < _ENOUGH:
            found.append(f"{what}, {name}: only {phase.on_rate:.0%} of the packets were carried")
        if phase.dropped:
            found.append(f"{what}, {name}: dropped {', '.join(f'{n} {why}' for why, n in phase.dropped.items())}")
    return found


def judge(case: UdpResult, bare_path: float) -> list[str]:
    """Say whether a case meets the mark, where there is one; `bare_path` is what the bare path costs."""
    if case.codecs or case.streams != MARK_STREAMS:
        return []
    cost, late = case.both.us.median, case.late_ms.p99
    times = f"{cost / bare_path:.1f} times the bare path" if bare_path else "the bare path was not measured"
    return [
        f"{'met' if cost <= MARK_US else 'MISSED'}: {cost:.1f} us for one up and one down (mark: {MARK_US:g}), {times}",
        f"{'met' if late < MARK_LATE_MS else 'MISSED'}: p99 {late:.1f} ms late (mark: below {MARK_LATE_MS:g})",
    ]
