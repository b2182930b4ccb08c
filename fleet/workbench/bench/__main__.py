"""`python -m fleet.workbench.bench`: what scripts/bench runs when everything is installed."""

from pathlib import Path
from typing import Annotated

import typer

from fleet.workbench.bench.bootstrap import BootstrapExperiment
from fleet.workbench.bench.bootstrap_table import show_bootstrap
from fleet.workbench.bench.broker import BrokerExperiment
from fleet.workbench.bench.broker_table import show_broker
from fleet.workbench.bench.call import CallExperiment
from fleet.workbench.bench.events import EventsExperiment
from fleet.workbench.bench.events_table import show_events
from fleet.workbench.bench.followers import FollowersExperiment
from fleet.workbench.bench.followers_table import show_followers
from fleet.workbench.bench.hello import HelloExperiment
from fleet.workbench.bench.jobs import JobsExperiment
from fleet.workbench.bench.jobs_table import show_jobs
from fleet.workbench.bench.libraries import LibrariesExperiment
from fleet.workbench.bench.libraries_table import show_libraries
from fleet.workbench.bench.result import run
from fleet.workbench.bench.role_tables import show_call, show_hello, show_turns
from fleet.workbench.bench.turn import TurnExperiment
from fleet.workbench.bench.turn_table import show_turn
from fleet.workbench.bench.turns import TurnsExperiment
from fleet.workbench.bench.udp import UdpExperiment
from fleet.workbench.bench.udp_table import show_udp

Seconds = Annotated[float, typer.Option(min=0.1, max=5, help="Seconds of each measured window.")]
Repeats = Annotated[int, typer.Option(min=1, max=9, help="Windows of each kind.")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="File for the results, as JSON.")]
Devices = Annotated[
    list[int] | None,
    typer.Option(
        min=1, max=100_000, help="How many devices Redis knows; repeat the option to measure several numbers."
    ),
]
Connected = Annotated[
    int, typer.Option(min=1, max=15_000, help="How many of the known devices are connected, at most.")
]

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)


@app.callback()
def benchmarks() -> None:
    """Measure what fleet costs on this machine."""


@app.command()
def udp(
    streams: Annotated[list[int] | None, typer.Option(min=1, max=5000, help="Simultaneous duplex streams.")] = None,
    seconds: Seconds = 0.4,
    repeats: Repeats = 3,
    codecs: Annotated[
        bool | None, typer.Option(help="Only with, or only without Opus and voice detection; default: both.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """CPU per audio packet in the edge, and how late the edge sends packets."""
    experiment = UdpExperiment(
        streams=streams or [50, 200],
        codecs=[False, True] if codecs is None else [codecs],
        seconds=seconds,
        repeats=repeats,
    )
    run(experiment, show_udp, json_file)


@app.command()
def broker(
    devices: Annotated[int, typer.Option(min=1, max=10_000, help="Devices that come and go in each round.")] = 400,
    messages: Annotated[int, typer.Option(min=1, max=100_000, help="Messages each way in each round.")] = 4000,
    repeats: Annotated[int, typer.Option(min=1, max=20, help="Rounds.")] = 5,
    json_file: JsonFile = None,
) -> None:
    """CPU of Mosquitto per connection and per message, with and without the plugin."""
    experiment = BrokerExperiment(devices=devices, messages=messages, seconds=0.5, repeats=repeats)
    run(experiment, show_broker, json_file)


@app.command()
def bootstrap(
    rate: Annotated[list[float] | None, typer.Option(min=1, max=5000, help="Requests per second.")] = None,
    devices: Annotated[
        int, typer.Option(min=1, max=100_000, help="How many known devices send requests, in turn.")
    ] = 2000,
    closed: Annotated[bool, typer.Option(help="Serve bound devices only, instead of everybody.")] = False,
    seconds: Seconds = 3.0,
    repeats: Repeats = 3,
    json_file: JsonFile = None,
) -> None:
    """CPU of the api per bootstrap, and how long devices wait for the answer when many ask."""
    experiment = BootstrapExperiment(
        rates=rate or [50, 200, 500], devices=devices, closed=closed, seconds=seconds, repeats=repeats
    )
    run(experiment, show_bootstrap, json_file)


@app.command()
def hello(
    devices: Devices = None,
    connected: Connected = 1000,
    rate: Annotated[float, typer.Option(min=1, max=5000, help="Hellos per second.")] = 400,
    seconds: Seconds = 1.0,
    repeats: Repeats = 3,
    json_file: JsonFile = None,
) -> None:
    """CPU of worker, edge, Redis and broker per hello, and what an idle device costs."""
    experiment = HelloExperiment(
        devices=devices or [100, 20_000], connected=connected, rate=rate, seconds=seconds, repeats=repeats
    )
    run(experiment, show_hello, json_file)


@app.command()
def call(
    devices: Devices = None,
    connected: Connected = 100,
    rate: Annotated[float, typer.Option(min=1, max=1000, help="Turns per second.")] = 40,
    seconds: Seconds = 1.0,
    repeats: Repeats = 3,
    json_file: JsonFile = None,
) -> None:
    """CPU of worker, Redis and broker per tool call."""
    experiment = CallExperiment(
        devices=devices or [100, 20_000], connected=connected, rate=rate, seconds=seconds, repeats=repeats
    )
    run(experiment, show_call, json_file)


@app.command()
def turns(
    workers: Annotated[list[int] | None, typer.Option(min=1, max=16, help="Worker processes.")] = None,
    users: Annotated[int, typer.Option(min=1, max=500, help="Users that speak at the same time.")] = 64,
    calls: Annotated[int, typer.Option(min=0, max=16, help="Tool calls of each turn.")] = 1,
    seconds: Seconds = 2.0,
    repeats: Repeats = 3,
    json_file: JsonFile = None,
) -> None:
    """Turns per second of one worker process and of two, with a chat model that costs nothing."""
    experiment = TurnsExperiment(workers=workers or [1, 2], users=users, calls=calls, seconds=seconds, repeats=repeats)
    run(experiment, show_turns, json_file)


@app.command()
def events(
    connected: Annotated[int, typer.Option(min=1, max=5000, help="Connected devices.")] = 200,
    rate: Annotated[float, typer.Option(min=1, max=1000, help="Turns per second.")] = 100,
    count: Annotated[int, typer.Option(min=100, max=1_000_000, help="Events of a round of the collector.")] = 20_000,
    seconds: Seconds = 2.0,
    repeats: Repeats = 5,
    json_file: JsonFile = None,
) -> None:
    """What events add to hellos, turns and tool calls, and what it costs control to collect one."""
    experiment = EventsExperiment(connected=connected, rate=rate, events=count, seconds=seconds, repeats=repeats)
    run(experiment, show_events, json_file)


@app.command()
def followers(
    clients: Annotated[int, typer.Option(min=1, max=1000, help="Clients that follow events.")] = 1000,
    rate: Annotated[float, typer.Option(min=1, max=10_000, help="Events per second.")] = 1000,
    seconds: Annotated[float, typer.Option(min=1, max=600, help="Seconds of the measured window.")] = 10.0,
    json_file: JsonFile = None,
) -> None:
    """Time from an event to the clients that follow it over the REST API, and what that costs control."""
    experiment = FollowersExperiment(followers=clients, rate=rate, seconds=seconds, repeats=1)
    run(experiment, show_followers, json_file)


@app.command()
def jobs(  # noqa: PLR0913 - the arguments are the command line
    devices: Annotated[int, typer.Option(min=100, max=1_000_000, help="Devices; three of ten are offline.")] = 2000,
    rate: Annotated[float, typer.Option(min=1, max=5000, help="Devices a second.")] = 1000,
    talkers: Annotated[int, typer.Option(min=1, max=500, help="Devices that talk meanwhile.")] = 50,
    workers: Annotated[int, typer.Option(min=1, max=8, help="Worker processes.")] = 1,
    outer: Annotated[
        int | None,
        typer.Option(
            "--brokers",
            min=0,
            max=64,
            help="Brokers of the devices, bridged to that of the workers; default: as many as open files demand, "
            "0 if one broker takes all.",
        ),
    ] = None,
    repeats: Repeats = 1,
    json_file: JsonFile = None,
) -> None:
    """A tool job over many simulated devices: exact results, rate, CPU, turns beside it, and a canary that fails."""
    experiment = JobsExperiment(
        devices=devices, rate=rate, talkers=talkers, workers=workers, outer=outer, seconds=0.0, repeats=repeats
    )
    run(experiment, show_jobs, json_file)


@app.command()
def turn(
    at_once: Annotated[list[int] | None, typer.Option(min=1, max=100, help="Turns that run at the same time.")] = None,
    rate: Annotated[float, typer.Option(min=1, max=1000, help="Turns per second.")] = 40,
    seconds: Seconds = 3.0,
    repeats: Repeats = 3,
    json_file: JsonFile = None,
) -> None:
    """Time that fleet adds between a chat model's first token and a gateway client's first sentence."""
    experiment = TurnExperiment(at_once=at_once or [1, 100], rate=rate, seconds=seconds, repeats=repeats)
    run(experiment, show_turn, json_file)


@app.command()
def libraries(
    seconds: Seconds = 0.2,
    repeats: Repeats = 9,
    json_file: JsonFile = None,
) -> None:
    """CPU of our own code, and of the libraries that it replaces: Redis, metrics, HTTP, WebSockets."""
    run(LibrariesExperiment(seconds=seconds, repeats=repeats), show_libraries, json_file)


if __name__ == "__main__":
    app()
