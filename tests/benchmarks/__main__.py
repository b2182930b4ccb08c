"""`python -m tests.benchmarks`: what scripts/bench runs: the benchmarks of fleet, and those of whole servers.

A command that needs a browser, speech models or SQL imports them itself: all of them take two seconds of a core.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.console import Console

from fleet.ground.errors import ConfigError
from fleet.workbench.bench.__main__ import Connected, Devices, JsonFile, Repeats, Seconds, app
from fleet.workbench.bench.result import as_json, members, run
from tests.benchmarks.all import AllExperiment, AllFigures, show_all
from tests.benchmarks.compare import figures_of, read_figures, show_changes
from tests.benchmarks.peer import PeerExperiment
from tests.benchmarks.plots import draw_plots
from tests.benchmarks.server_table import show_servers
from tests.support.patient_fleet import be_patient

Rates = Annotated[list[float] | None, typer.Option("--rate", min=1, max=5000, help="Hellos per second.")]
Streams = Annotated[int, typer.Option(min=1, max=5000, help="Devices whose microphones are open.")]


@app.command()
def echo(
    seconds: Annotated[float, typer.Option(min=5, max=3600, help="Seconds without a user, at each level.")] = 600,
    repeats: Repeats = 1,
    levels: Annotated[list[float] | None, typer.Option("--level", help="Echo above the user's speech, in dB.")] = None,
    json_file: JsonFile = None,
) -> None:
    """Self-interruptions and commands understood over the echo of an answer."""
    from tests.benchmarks.echo import EchoExperiment, show_echo

    experiment = EchoExperiment(seconds=seconds, repeats=repeats, levels=levels or (0.0, 7.0, 13.0))
    run(experiment, show_echo, json_file)


@app.command()
def peer(
    checkout: Annotated[Path, typer.Argument(help="xiaozhi-mqtt-gateway, in which `npm install` was run.")],
    connected: Connected = 1000,
    rates: Rates = None,
    streams: Streams = 200,
    seconds: Seconds = 3.0,
    repeats: Repeats = 3,
    json_file: JsonFile = None,
) -> None:
    """CPU of fleet and of another gateway behind the same load, in turn, with ratios."""
    experiment = PeerExperiment(
        checkout=checkout,
        connected=connected,
        rates=rates or [20, 600],
        streams=streams,
        seconds=seconds,
        repeats=repeats,
    )
    run(experiment, show_servers, json_file)


@app.command()
def interruptions(
    count: Annotated[int, typer.Option(min=1, max=200, help="Sounds of either kind.")] = 50,
    json_file: JsonFile = None,
) -> None:
    """What noises, backchannels and interruptions over a long answer do to it, as the device hears it."""
    from tests.benchmarks.interruptions import InterruptionsExperiment
    from tests.benchmarks.interruptions_table import show_interruptions

    run(InterruptionsExperiment(seconds=0.0, repeats=1, count=count), show_interruptions, json_file)


@app.command()
def registry(
    devices: Annotated[int, typer.Option(min=100, max=10_000_000, help="Devices, each with three tags.")] = 1_000_000,
    engine: Annotated[list[str] | None, typer.Option(help="sqlite or postgresql; may be repeated.")] = None,
    requests: Annotated[int, typer.Option(min=1, max=10_000, help="Requests of each kind.")] = 200,
    json_file: JsonFile = None,
) -> None:
    """How long searches, substrings and facets take over the REST API of control."""
    from tests.benchmarks.registry import ENGINES, Engine, RegistryExperiment, show_registry

    engines = [cast("Engine", one) for one in engine or ENGINES]
    experiment = RegistryExperiment(seconds=0.0, repeats=1, devices=devices, engines=engines, requests=requests)
    run(experiment, show_registry, json_file)


@app.command()
def job_rows(
    devices: Annotated[int, typer.Option(min=100, max=10_000_000, help="Rows; seven of ten are online.")] = 1_000_000,
    rate: Annotated[float, typer.Option(min=1, max=5_000, help="Devices a second.")] = 5_000,
    seconds: Annotated[float, typer.Option(min=1, max=600, help="The job is stopped then.")] = 60.0,
    json_file: JsonFile = None,
) -> None:
    """A job over very many rows, whose shards' owners answer at once without devices."""
    from tests.benchmarks.job_rows import JobRowsExperiment, show_job_rows

    experiment = JobRowsExperiment(seconds=seconds, repeats=1, devices=devices, rate=rate)
    run(experiment, show_job_rows, json_file)


@app.command()
def announcements(
    devices: Annotated[int, typer.Option(min=10, max=100_000, help="Devices that are connected.")] = 1_000,
    busy: Annotated[int, typer.Option(min=0, max=10_000, help="Devices that play another clip meanwhile.")] = 20,
    old: Annotated[int, typer.Option(min=0, max=100_000, help="Devices with firmware before 2.5, about.")] = 50,
    rate: Annotated[float, typer.Option(min=1, max=5_000, help="Devices a second.")] = 1_000,
    workers: Annotated[int, typer.Option(min=1, max=8, help="Worker processes.")] = 1,
    json_file: JsonFile = None,
) -> None:
    """One text to many idle devices: how fast they take it, and whether receipts are what they heard."""
    from tests.benchmarks.announcements import AnnouncementsExperiment, show_announcements

    if busy + old >= devices:
        raise typer.BadParameter("some devices must be idle")
    experiment = AnnouncementsExperiment(
        seconds=0.0, repeats=1, devices=devices, busy=busy, old=old, rate=rate, workers=workers
    )
    run(experiment, show_announcements, json_file)


@app.command()
def console(
    devices: Annotated[int, typer.Option(min=1_000, max=10_000_000, help="Devices in the list.")] = 1_000_000,
    seconds: Annotated[float, typer.Option(min=1, max=600, help="How long the list is scrolled.")] = 20.0,
    rows: Annotated[int, typer.Option(min=100, max=100_000, help="Rows a second.")] = 2_000,
    rate: Annotated[float, typer.Option(min=1, max=5_000, help="Events a second.")] = 1_000,
    json_file: JsonFile = None,
) -> None:
    """How soon the console is there, and whether a long list and many events leave it free."""
    from tests.benchmarks.console import ConsoleExperiment, show_console

    experiment = ConsoleExperiment(seconds=seconds, repeats=1, devices=devices, rows=rows, rate=rate)
    run(experiment, show_console, json_file)


@app.command("turn-ends")
def turn_ends(
    half: Annotated[
        str, typer.Option(help="`judge`, or `choose`: the commands by which thresholds were chosen.")
    ] = "judge",
    count: Annotated[int, typer.Option(min=1, max=100, help="Commands of each language.")] = 100,
    folder: Annotated[
        Path | None, typer.Option(help="Try these recordings instead: en_….wav, zh_….wav, 16 kHz.")
    ] = None,
    verdict_ms: Annotated[float, typer.Option(min=0, max=2000, help="From a pause to its verdicts.")] = 200.0,
    json_file: JsonFile = None,
) -> None:
    """How often a pause inside a command ends it, and how long finished commands wait."""
    from tests.benchmarks.turn_ends import TurnEndsExperiment
    from tests.benchmarks.turn_ends_table import show_turn_ends

    run(
        TurnEndsExperiment(seconds=0.0, repeats=1, half=half, count=count, folder=folder, verdict_ms=verdict_ms),
        show_turn_ends,
        json_file,
    )


@app.command("all")
def everything(
    connected: Connected = 1000,
    rates: Rates = None,
    streams: Streams = 200,
    devices: Devices = None,
    shards: Annotated[list[int] | None, typer.Option(min=1, max=256, help="Numbers of shards.")] = None,
    turns: Annotated[float, typer.Option(min=1, max=1000, help="Turns per second.")] = 40,
    seconds: Seconds = 2.0,
    repeats: Repeats = 3,
    json_file: JsonFile = None,
    compare: Annotated[Path | None, typer.Option(help="JSON of an earlier run, to print what has changed.")] = None,
) -> None:
    """Every operation with real roles, then with more known devices and shards."""
    with _as_usage():
        before = read_figures(compare) if compare else {}
    experiment = AllExperiment(
        connected=connected,
        rates=rates or [20, 100, 300, 600],
        streams=streams,
        devices=devices or [100, 1000, 10_000, 100_000],
        shards=shards or [16, 64, 256],
        requests=[50, 500],
        turns=turns,
        at_once=[1, 100],
        seconds=seconds,
        repeats=repeats,
    )

    def show(console: Console, found: AllFigures) -> None:
        show_all(console, found)
        if compare:
            show_changes(console, before, figures_of(json.loads(as_json(members(found)))))

    run(experiment, show, json_file)


@app.command()
def plots(
    figures: Annotated[Path, typer.Argument(help="What `scripts/bench all --json` wrote.")],
    folder: Annotated[Path, typer.Option(help="For the pictures.")] = Path("docs/performance"),
) -> None:
    """Draw cost against rate and against known devices, as SVG."""
    with _as_usage():
        written = draw_plots(figures, folder)
    typer.echo("\n".join(map(str, written)))


@contextmanager
def _as_usage() -> Iterator[None]:
    """Report a wrong file as a wrong argument of the command line."""
    try:
        yield
    except ConfigError as error:
        raise typer.BadParameter(str(error)) from error


if __name__ == "__main__":
    be_patient()
    app()
