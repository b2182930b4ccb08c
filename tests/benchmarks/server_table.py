"""Figures of servers behind the same load, and of fleet with more devices and shards, for people."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from fleet.workbench.bench.figures import Spread
from fleet.workbench.bench.table_cells import cell
from fleet.workbench.bench.testbed import Cost
from tests.benchmarks.peer import FLEET, PEER, ServerResult
from tests.benchmarks.scale import ScaleResult

_PARTS = ("worker", "edge", "redis", "broker")
_NOTE = (
    "fleet: its roles, with Redis and Mosquitto, and the columns on the right; fleet up: all in one; peer: its process"
    " without the chat server that it hands audio to. A packet up and one down of fleet is from `bench udp` without"
    " codecs. Packet up: the edge of fleet begins to listen after some seconds, decodes, and looks for speech. Memory:"
    " bytes that the resident memory of the processes grew by for each connected device."
)


def show_servers(console: Console, found: Sequence[ServerResult]) -> None:
    """Print the servers side by side, each with its ratio to the peer, and the parts of fleet."""
    names = [server.server for server in found]
    ratios = [name for name in names if PEER in names and name != PEER]
    table = Table(title="CPU in microseconds an operation: median (least-most)", title_justify="left")
    table.add_column("operation", no_wrap=True)
    for name in (*names, *(f"{name}\n/ peer" for name in ratios), *_PARTS):
        table.add_column(name, justify="right")
    first = next(server for server in found if server.server == FLEET)
    for what in first.operations:
        us = {server.server: server.operations[what].us for server in found if what in server.operations}
        table.add_row(what, *_row(us, names, ratios))
    table.add_row("memory, idle device", *_row({one.server: one.memory for one in found}, names, ratios))
    console.print(table)
    console.print(_NOTE)
    times = Table(title="rate, and the time to the answer in ms: p50 / p99", title_justify="left")
    for name in ("operation", *names):
        times.add_column(name, no_wrap=True)
    for what in first.operations:
        times.add_row(what, *(_times(server.operations.get(what)) for server in found))
    console.print(times)


def _times(cost: Cost | None) -> str:
    if cost is None:
        return "-"
    lost = f", {cost.lost} lost" if cost.lost else ""
    waits = f": {cost.ms.p50:.1f} / {cost.ms.p99:.1f}" if cost.ms.most else ""
    return f"{cost.rate:.0f}/s{waits}{lost}"


def _row(found: Mapping[str, Mapping[str, Spread]], names: Sequence[str], ratios: Sequence[str]) -> list[str]:
    """Return the sum of each server, the ratios, and the parts of fleet."""
    sums = {name: parts["all"] for name, parts in found.items()}
    return [
        *(cell(sums.get(name)) for name in names),
        *(_ratio(sums.get(name), sums.get(PEER)) for name in ratios),
        *(cell(found[FLEET].get(part)) for part in _PARTS),
    ]


def _ratio(one: Spread | None, other: Spread | None) -> str:
    return f"{one.median / other.median:.2f}" if one and other and other.median else "-"


def show_scale(console: Console, cases: Sequence[ScaleResult]) -> None:
    """Print what an operation costs with more known devices and with more shards."""
    table = Table(title="CPU in microseconds, all processes / the worker: medians", title_justify="left")
    for name in ("devices", "shards", "hello and goodbye", "packet up (edge)", "one more call"):
        table.add_column(name, justify="right")
    for case in cases:
        hello, packet = case.hello.us, case.packet.us
        table.add_row(
            f"{case.devices:,}",
            str(case.shards),
            f"{hello['all'].median:.0f} / {hello['worker'].median:.0f}",
            f"{packet['edge'].median:.1f}",
            f"{case.call_us['all'].median:.0f} / {case.call_us['worker'].median:.0f}",
        )
    console.print(table)
