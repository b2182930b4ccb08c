"""`fleet conformance`: the checks of the device contract against any server."""

import asyncio
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from fleet.ground import runtime
from fleet.ground.errors import ConfigError
from fleet.ground.terminal import open_console
from fleet.wire.topics import canonical_mac
from fleet.workbench.conformance.checks import select
from fleet.workbench.conformance.own_broker import OwnBroker
from fleet.workbench.conformance.provision import Images
from fleet.workbench.conformance.results import Results
from fleet.workbench.conformance.run import MOST_AT_ONCE, Task, plan, run_all
from fleet.workbench.conformance.screen import progress, show
from fleet.workbench.conformance.target import Activation, Target, reach
from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.sim.network.https import load_trust
from fleet.workbench.sim.profiles.profile import find_profile

STOCK = ("P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9")
EXIT_INTERRUPTED = 130

Ota = Annotated[
    str | None, typer.Option(help="Bootstrap address of the server under test. Without it, a `fleet up` of its own.")
]
Broker = Annotated[OwnBroker, typer.Option(help="Broker of that `fleet up`; all but the embedded one need Mosquitto.")]

Steer = Annotated[
    int | None, typer.Option(help="Port on which to serve the scripted models that the server is set up to use.")
]
SteerHost = Annotated[str, typer.Option(help="Address on which to serve them.")]
Profiles = Annotated[
    list[str] | None, typer.Option(metavar="<str>", help="Kind of device; may be given again. Default: all.")
]


def conformance(  # noqa: PLR0913 - the arguments are the command line
    ota: Ota = None,
    broker: Broker = OwnBroker.EMBEDDED,
    profile: Profiles = None,
    only: Annotated[str, typer.Option(help="Groups or checks, with commas: H,U,D4. Default: all.")] = "",
    steer: Steer = None,
    steer_host: SteerHost = LOOPBACK,
    idle_seconds: Annotated[
        float | None, typer.Option(help="After how much silence the server says goodbye, if that is soon.")
    ] = None,
    refused: Annotated[str, typer.Option(help="MAC of a device that the server is set up to turn away.")] = "",
    activation: Annotated[
        str, typer.Option(help="Bootstrap address of a server that serves bound devices only; needs --bind.")
    ] = "",
    bind: Annotated[str, typer.Option(help="Command that enters a device's code there, with {code} in it.")] = "",
    serial: Annotated[str, typer.Option(help="SERIAL:KEY that it knows, the key 64 hexadecimal digits.")] = "",
    firmware: Annotated[str, typer.Option(help="BOARD/VERSION that the server offers.")] = "",
    forced: Annotated[str, typer.Option(help="BOARD/VERSION to which it brings every device of a board.")] = "",
    ca: Annotated[Path | None, typer.Option(help="PEM file of the authorities that devices trust, with --ota.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Run everything so many times.")] = 1,
    at_once: Annotated[int, typer.Option(min=1, help="Checks side by side.")] = MOST_AT_ONCE,
    junit: Annotated[Path | None, typer.Option(help="File for the results as JUnit XML.")] = None,
    json: Annotated[Path | None, typer.Option(help="File for the results as JSON.")] = None,
) -> None:
    """Check a server against all that stock firmware needs; exit code 1 when something failed.

    Most checks need the scripted models: see docs/conformance.md.
    """
    try:
        profiles = [find_profile(name) for name in profile or STOCK]
        tasks = plan(select(name for name in only.split(",") if name.strip()), profiles, rounds)
        server = Target(
            ota,
            steer,
            steer_host,
            idle_seconds,
            _mac(refused),
            _activation(activation, bind, serial),
            Images(firmware, forced),
            load_trust(ca),
            broker,
        )
    except ConfigError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(runtime.EXIT_MISCONFIGURED) from error
    raise typer.Exit(runtime.run(lambda: interruptible(_check(server, tasks, at_once, junit, json))))


async def interruptible(work: Awaitable[int]) -> int:
    """Return the exit code of some work. Ctrl-C must not look like a server without faults."""
    try:
        return await work
    except asyncio.CancelledError:
        return EXIT_INTERRUPTED


async def _check(server: Target, tasks: Sequence[Task], at_once: int, junit: Path | None, json: Path | None) -> int:
    console = open_console()
    async with reach(server) as setup:
        with progress(console, len(tasks)) as observer:
            done = await run_all(tasks, setup, observer, at_once)
    results = Results(server=setup.ota_url, results=done)
    show(console, results)
    if junit:
        results.write_junit(junit)
    if json:
        results.write_json(json)
    return 0 if results.ok else runtime.EXIT_FAILED


def _activation(ota: str, bind: str, serial: str) -> Activation | None:
    if not ota:
        return None
    if "{code}" not in bind:
        raise ConfigError("--activation needs --bind with {code} in it")
    name, _, digits = serial.rpartition(":")
    try:
        return Activation(ota, bind, name, bytes.fromhex(digits))
    except ValueError:
        raise ConfigError("--serial must be SERIAL:KEY, the key 64 hexadecimal digits") from None


def _mac(text: str) -> str:
    mac = canonical_mac(text) if text else ""
    if mac is None:
        raise ConfigError(f"--refused: {text} is no MAC")
    return mac
