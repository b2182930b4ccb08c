"""`fleet endurance`: many conversations over a bad network."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from fleet.ground import runtime
from fleet.ground.errors import ConfigError
from fleet.ground.terminal import open_console, plural, visible
from fleet.workbench.conformance.command import STOCK, Ota, Profiles, Steer, SteerHost, interruptible
from fleet.workbench.conformance.endurance import REBIND_AT, EnduranceReport, endure
from fleet.workbench.conformance.target import Target, reach
from fleet.workbench.conformance.verdict import NotApplicable
from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.sim.network.faults import Faults
from fleet.workbench.sim.profiles.profile import Profile, find_profile


def endurance(  # noqa: PLR0913 - the arguments are the command line
    ota: Ota = None,
    profile: Profiles = None,
    conversations: Annotated[int, typer.Option(min=1, help="How many, of three turns each.")] = 100,
    loss: Annotated[float, typer.Option(min=0, max=1, help="Share of datagrams that are lost, in each direction.")] = 0,
    reorder: Annotated[float, typer.Option(min=0, max=1, help="Share of datagrams that come late.")] = 0,
    rebind: Annotated[bool, typer.Option(help="A new address for each device, in the midst of a sentence.")] = False,
    steer: Steer = None,
    steer_host: SteerHost = LOOPBACK,
    at_once: Annotated[int, typer.Option(min=1, help="Conversations side by side.")] = 8,
    json: Annotated[Path | None, typer.Option(help="File for the report as JSON.")] = None,
) -> None:
    """Hold many conversations over a bad network; exit code 1 when one of them was not whole."""
    try:
        profiles = [find_profile(name) for name in profile or STOCK]
        if ota is not None and steer is None:
            raise ConfigError("--ota needs --steer: the conversations are held with the scripted models")
    except ConfigError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(runtime.EXIT_MISCONFIGURED) from error
    faults = Faults(loss=loss, reorder=reorder, rebind_at=REBIND_AT if rebind else 0)
    target = Target(ota, steer, steer_host)
    raise typer.Exit(runtime.run(lambda: interruptible(_hold(target, profiles, conversations, faults, at_once, json))))


async def _hold(
    target: Target, profiles: Sequence[Profile], conversations: int, faults: Faults, at_once: int, json: Path | None
) -> int:
    console = open_console()
    async with reach(target) as setup:
        with Progress(console=console, transient=True) as bar:
            shown = bar.add_task("conversations", total=conversations)

            def ended(failures: list[str]) -> None:
                bar.update(shown, advance=1)
                for failure in failures:
                    console.print(f"[bold red]✗[/] {escape(visible(failure))}")

            try:
                report = await endure(setup, profiles, conversations, faults, at_once, ended)
            except NotApplicable as error:
                raise ConfigError(str(error)) from error
    _show(console, report)
    if json:
        report.write_json(json)
    return 0 if report.ok else runtime.EXIT_FAILED


def _show(console: Console, report: EnduranceReport) -> None:
    colour, profiles = "green" if report.ok else "bold red", ", ".join(report.profiles)
    lost, gaps = plural(report.lost, "datagram"), plural(report.gaps, "gap")
    console.print(
        f"[{colour}]{report.completed} of {plural(report.conversations, 'conversation')} whole[/], {profiles}"
    )
    console.print(f"{report.answered} of {plural(report.turns, 'turn')} answered, {lost} lost on the way")
    console.print(f"{gaps} inside sentences, {report.gaps_ms} ms in all")
    if report.p50 is not None and report.p99 is not None:
        console.print(
            f"end of speech to first sound: median {report.p50:.0f} ms, p99 {report.p99:.0f} ms "
            f"(this process stalled for {report.longest_stall_ms:.0f} ms at most)"
        )
