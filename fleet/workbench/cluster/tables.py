"""Tables about a cluster and a check."""

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
"""Stall of the device process in seconds from which on it loses words and sounds itself."""


def show_addresses(console: Console, cluster: Cluster) -> None:
    """Print where everything is."""
    # Addresses are meant to be copied: do not cut them off in a narrow terminal.
    table = Table(
        "process", "pid", *(Column(name, overflow="fold") for name in ("address", "metrics", "log")), box=SIMPLE
    )
    for name, program, address in cluster.ground.programs:
        table.add_row(name, str(program.pid), address, "", "")
    for member in cluster.members:
        station = member.station
        address = f"udp {LOOPBACK}:{station.udp}" if station.udp else ""
        if station.port:
            address = f"{LOOPBACK}:{station.port}, behind {cluster.doors[member.role].port}"
        metrics = f"http://{LOOPBACK}:{station.metrics}/metrics"
        table.add_row(member.name, str(member.pid), address, metrics, member.log.name)
    console.print(table)
    console.print(f"devices boot from   {cluster.ota_url}")
    console.print(f"gateway             {cluster.gateway_url} (test page: /test)")
    console.print(f"settings and logs   {cluster.plan.data}")


def show_verdict(console: Console, verdict: Verdict) -> None:
    """Print the result of a check."""
    table = Table("restart", "ready after", "old one gone after", "turns meanwhile", "longest wait")
    for one in verdict.restarts:
        table.add_row(one.name, f"{one.ready:.1f} s", f"{one.drain:.1f} s", str(one.turns), f"{one.longest_wait:.2f} s")
    console.print(table)
    console.print(
        f"{verdict.people} people, {verdict.turns} turns, {verdict.answered} answered, {verdict.lost} lost, "
        f"{verdict.again} asked anew; {verdict.calls} tool calls; {verdict.api_requests} requests to the api"
    )
    console.print(
        f"from a question's end to the answer's begin: median {verdict.median_wait:.2f} s, "
        f"longest {verdict.longest_wait:.2f} s (the devices themselves came late by {verdict.held_up:.2f} s at most, "
        f"{verdict.rough} breaches of timing)"
    )
    for fault in verdict.faults[:_SHOWN_FAULTS]:
        console.print(f"[bold red]✗[/] {escape(visible(fault.rule))}: {escape(visible(fault.detail))}")
    if len(verdict.faults) > _SHOWN_FAULTS:
        console.print(f"… and {len(verdict.faults) - _SHOWN_FAULTS} more")
    console.print("[green]nothing was lost[/]" if verdict.ok else "[bold red]something was lost[/]")
    if not verdict.ok and verdict.held_up > _TOO_LATE:
        console.print("The devices' own process came late: the machine is too busy to tell who lost it. Try again.")
