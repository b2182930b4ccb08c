"""`python -m fleet.bench`: what scripts/bench runs when everything is installed."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from fleet import runtime
from fleet.bench.machine import Machine
from fleet.bench.table import make_console, show_udp
from fleet.bench.udp import Findings, Plan, measure
from fleet.errors import ConfigError

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)


@app.callback()
def benchmarks() -> None:
    """Measure what fleet costs on this machine."""


@app.command()
def udp(
    streams: Annotated[list[int] | None, typer.Option(min=1, max=5000, help="Simultaneous duplex streams.")] = None,
    seconds: Annotated[float, typer.Option(min=0.1, max=5, help="Length of a measured window.")] = 0.4,
    repeats: Annotated[int, typer.Option(min=1, max=9, help="Windows of each phase.")] = 3,
    codecs: Annotated[bool | None, typer.Option(help="Only with, or only without Opus and voice detection.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="File for the figures.")] = None,
) -> None:
    """CPU a packet of the edge's audio, and how late packets are sent."""
    plan = Plan(streams or [50, 200], [False, True] if codecs is None else [codecs], seconds, repeats)
    sys.exit(runtime.run(lambda: _udp(plan, json_file)))


async def _udp(plan: Plan, json_file: Path | None) -> None:
    console, machine = make_console(), Machine.here()
    with console.status("") as status:
        found = await measure(plan, status.update)
    show_udp(console, machine, found)
    if json_file:
        _write(json_file, machine, plan, found)


def _write(path: Path, machine: Machine, plan: Plan, found: Findings) -> None:
    document = {"benchmark": "udp", "machine": machine, "plan": plan, **dataclasses.asdict(found)}
    try:
        path.write_text(json.dumps(document, default=dataclasses.asdict, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


if __name__ == "__main__":
    app()
