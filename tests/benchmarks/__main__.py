"""`python -m tests.benchmarks`: what scripts/bench runs: the benchmarks of fleet, and those of whole servers."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

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

Rates = Annotated[list[float] | None, typer.Option("--rate", min=1, max=5000, help="Hellos per second.")]
Streams = Annotated[int, typer.Option(min=1, max=5000, help="Devices whose microphones are open.")]


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
    app()
