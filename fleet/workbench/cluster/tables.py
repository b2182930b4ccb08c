"""Tables of a cluster and of a check."""

from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from fleet.ground.terminal import visible
from fleet.workbench.cluster.check.judge import Verdict
from fleet.workbench.cluster.cluster import Cluster
from fleet.workbench.local_servers.ports import LOOPBACK

_SHOWN_FAULTS = 40
_TOO_LATE = 1.0
"""Seconds; if the process of the devices runs later than this, it loses audio itself."""


def show_addresses(console: Console, cluster: Cluster) -> None:
    """Print processes and addresses."""
    # Users copy the addresses: do not truncate them in a narrow terminal.
    table = Table(
        "process", "pid", *(Column(name, overflow="fold") for name in ("address", "metrics", "log")), box=SIMPLE
    )
    for name, program, address in cluster.services.programs:
        table.add_row(name, str(program.pid), address, "", "")
    for process in cluster.processes:
        ports = process.ports
        address = f"udp {LOOPBACK}:{ports.udp}" if ports.udp else ""
        if ports.port:
            address = f"{LOOPBACK}:{ports.port}, behind {cluster.proxies[process.role].port}"
        metrics = f"http://{LOOPBACK}:{ports.metrics}/metrics"
        table.add_row(process.name, str(process.pid), address, metrics, process.log.name)
    console.print(table)
    console.print(f"devices boot from   {cluster.ota_url}")
    console.print(f"gateway             {cluster.gateway_url} (test page: /test)")
    console.print(f"settings and logs   {cluster.options.data}")


def show_verdict(console: Console, verdict: Verdict) -> None:
    """Print the result of a check."""
    table = Table("restart", "ready after", "old one ended after", "turns meanwhile", "longest wait")
    for one in verdict.restarts:
        table.add_row(one.name, f"{one.ready:.1f} s", f"{one.drain:.1f} s", str(one.turns), f"{one.longest_wait:.2f} s")
    console.print(table)
    console.print(
        f"{verdict.users} users, {verdict.turns} turns, {verdict.answered} answered, {verdict.lost} lost, "
        f"{verdict.repeats} repeated; {verdict.calls} tool calls; {verdict.api_requests} requests to the api"
    )
    console.print(
        f"from the end of a question to the begin of its answer: median {verdict.median_wait:.2f} s, "
        f"longest {verdict.longest_wait:.2f} s (the devices were late by {verdict.device_lag:.2f} s at most, "
        f"{verdict.timing_violations} timing rules broken)"
    )
    for fault in verdict.faults[:_SHOWN_FAULTS]:
        console.print(f"[bold red]✗[/] {escape(visible(fault.rule))}: {escape(visible(fault.detail))}")
    if len(verdict.faults) > _SHOWN_FAULTS:
        console.print(f"… and {len(verdict.faults) - _SHOWN_FAULTS} more")
    console.print("[green]nothing was lost[/]" if verdict.ok else "[bold red]something was lost[/]")
    if not verdict.ok and verdict.device_lag > _TOO_LATE:
        console.print("The process of the devices was late: the machine is too busy for a verdict. Try again.")
