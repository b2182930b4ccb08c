"""`python -m fleet.workbench.bench`: what scripts/bench runs when everything is installed."""

import dataclasses
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.console import Console

from fleet.ground import runtime
from fleet.ground.errors import ConfigError
from fleet.workbench.bench import bootstrap as bootstrap_bench
from fleet.workbench.bench import broker as broker_bench
from fleet.workbench.bench import call as call_bench
from fleet.workbench.bench import hello as hello_bench
from fleet.workbench.bench import turn as turn_bench
from fleet.workbench.bench import turns as turns_bench
from fleet.workbench.bench import udp as udp_bench
from fleet.workbench.bench.bootstrap_table import show_bootstrap
from fleet.workbench.bench.broker_table import show_broker
from fleet.workbench.bench.machine import Machine
from fleet.workbench.bench.role_tables import show_call, show_hello, show_turns
from fleet.workbench.bench.table import make_console, show_udp
from fleet.workbench.bench.turn_table import show_turn

T = TypeVar("T")

Seconds = Annotated[float, typer.Option(min=0.1, max=5, help="Length of a measured window.")]
Repeats = Annotated[int, typer.Option(min=1, max=9, help="Windows of each kind.")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="File for the figures.")]
Devices = Annotated[list[int] | None, typer.Option(min=1, max=100_000, help="Known devices, once for each number.")]
Connected = Annotated[int, typer.Option(min=1, max=15_000, help="Most of them that are connected.")]

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)


@app.callback()
def benchmarks() -> None:
    """Measure what fleet costs on this machine."""


@app.command()
def udp(
    streams: Annotated[list[int] | None, typer.Option(min=1, max=5000, help="Simultaneous duplex streams.")] = None,
    seconds: Seconds = 0.4,
    repeats: Repeats = 3,
    codecs: Annotated[bool | None, typer.Option(help="Only with, or only without Opus and voice detection.")] = None,
    json_file: JsonFile = None,
) -> None:
    """CPU a packet of the edge's audio, and how late packets are sent."""
    plan = udp_bench.Plan(streams or [50, 200], [False, True] if codecs is None else [codecs], seconds, repeats)
    _run("udp", plan, lambda doing: udp_bench.measure(plan, doing), show_udp, json_file)


@app.command()
def broker(
    devices: Annotated[int, typer.Option(min=1, max=10_000, help="Devices that come and go in each round.")] = 400,
    messages: Annotated[int, typer.Option(min=1, max=100_000, help="Messages each way in each round.")] = 4000,
    repeats: Annotated[int, typer.Option(min=1, max=20, help="Rounds.")] = 5,
    json_file: JsonFile = None,
) -> None:
    """CPU of Mosquitto a connection and a message, with and without the plugin."""
    plan = broker_bench.Plan(devices, messages, idle_seconds=0.5, repeats=repeats)
    _run("broker", plan, lambda doing: broker_bench.measure(plan, doing), show_broker, json_file)


@app.command()
def bootstrap(
    rate: Annotated[list[float] | None, typer.Option(min=1, max=5000, help="Requests a second.")] = None,
    devices: Annotated[int, typer.Option(min=1, max=100_000, help="Known devices that ask in turn.")] = 2000,
    closed: Annotated[bool, typer.Option(help="Serve bound devices only, instead of everybody.")] = False,
    seconds: Seconds = 3.0,
    repeats: Repeats = 3,
    json_file: JsonFile = None,
) -> None:
    """CPU a bootstrap of the api, and how long devices of a herd wait for their answers."""
    plan = bootstrap_bench.Plan(rate or [50, 200, 500], devices, closed, seconds, repeats)
    _run("bootstrap", plan, lambda doing: bootstrap_bench.measure(plan, doing), show_bootstrap, json_file)


@app.command()
def hello(
    devices: Devices = None,
    connected: Connected = 1000,
    rate: Annotated[float, typer.Option(min=1, max=5000, help="Hellos a second.")] = 400,
    seconds: Seconds = 1.0,
    repeats: Repeats = 3,
    json_file: JsonFile = None,
) -> None:
    """CPU a hello of worker, Redis and broker, and what a device costs that does nothing."""
    plan = hello_bench.Plan(devices or [100, 20_000], connected, rate, seconds, repeats)
    _run("hello", plan, lambda doing: hello_bench.measure(plan, doing), show_hello, json_file)


@app.command()
def call(
    devices: Devices = None,
    connected: Connected = 100,
    rate: Annotated[float, typer.Option(min=1, max=1000, help="Turns a second.")] = 40,
    seconds: Seconds = 1.0,
    repeats: Repeats = 3,
    json_file: JsonFile = None,
) -> None:
    """CPU a tool call of worker, Redis and broker."""
    plan = call_bench.Plan(devices or [100, 20_000], connected, rate, seconds, repeats)
    _run("call", plan, lambda doing: call_bench.measure(plan, doing), show_call, json_file)


@app.command()
def turns(
    workers: Annotated[list[int] | None, typer.Option(min=1, max=16, help="Worker processes.")] = None,
    users: Annotated[int, typer.Option(min=1, max=500, help="Users that speak at the same time.")] = 64,
    calls: Annotated[int, typer.Option(min=0, max=16, help="Tool calls of each turn.")] = 1,
    seconds: Seconds = 2.0,
    repeats: Repeats = 3,
    json_file: JsonFile = None,
) -> None:
    """Turns a second of one worker process and of two, with a chat model that costs nothing."""
    plan = turns_bench.Plan(workers or [1, 2], users, calls, seconds, repeats)
    _run("turns", plan, lambda doing: turns_bench.measure(plan, doing), show_turns, json_file)


@app.command()
def turn(
    at_once: Annotated[list[int] | None, typer.Option(min=1, max=100, help="Turns that run at the same time.")] = None,
    rate: Annotated[float, typer.Option(min=1, max=1000, help="Turns a second.")] = 40,
    seconds: Seconds = 3.0,
    repeats: Repeats = 3,
    json_file: JsonFile = None,
) -> None:
    """What fleet adds between a chat model's first token and a gateway client's first sentence."""
    plan = turn_bench.Plan(at_once or [1, 100], rate, seconds, repeats)
    _run("turn", plan, lambda doing: turn_bench.measure(plan, doing), show_turn, json_file)


def _run(
    name: str,
    plan: object,
    measure: Callable[[Callable[[str], None]], Awaitable[T]],
    show: Callable[[Console, Machine, T], None],
    json_file: Path | None,
) -> None:
    async def main() -> None:
        console, machine = make_console(), Machine.here()
        with console.status("") as status:
            found = await measure(status.update)
        show(console, machine, found)
        if json_file:
            _write(json_file, {"benchmark": name, "machine": machine, "plan": plan, **_figures(found)})

    sys.exit(runtime.run(main))


def _figures(found: object) -> dict[str, object]:
    if isinstance(found, udp_bench.Findings | broker_bench.Findings):
        return dataclasses.asdict(found)
    return {"cases": found}


def _write(path: Path, document: dict[str, object]) -> None:
    try:
        path.write_text(json.dumps(document, default=_plain, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return str(value)


if __name__ == "__main__":
    app()
