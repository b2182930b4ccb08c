"""A `fleet up` as a child process, with its settings in a file and its log passed on."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from fleet.ground.errors import Unavailable
from fleet.ground.settings import Settings, variable
from fleet.ground.settings.fields import PREFIX
from fleet.workbench.local_servers.log_line import LogLine, parse_log
from fleet.workbench.local_servers.ports import LOOPBACK, Ports
from fleet.workbench.local_servers.process import run_program

READY_SECONDS = 90.0
_READY = "fleet is up"
_CONFIG = f"{PREFIX}CONFIG"

Value = str | int | float | bool


class Server:
    """A server that is up. `ota_url` is where devices boot from, `pid` its process."""

    def __init__(self, pid: int, ota_url: str) -> None:
        self.pid = pid
        self.ota_url = ota_url


def settings_for(ports: Ports, data: Path) -> dict[str, Value]:
    """Return the settings of a server that only this machine reaches and that tells everything."""
    return {
        "mqtt_host": LOOPBACK,
        "udp_host": LOOPBACK,
        "http_host": LOOPBACK,
        "cloud_host": LOOPBACK,
        "cloud_port": 0,
        "public_host": LOOPBACK,
        "mqtt_port": ports.mqtt,
        "udp_port": ports.udp,
        "http_port": ports.http,
        "data_dir": str(data),
        "log_level": "info",
        "log_format": "json",
        "log_pii": True,
    }


def write_settings(settings: Mapping[str, Value], path: Path) -> None:
    """Write settings as the TOML file that FLEET_CONFIG names; it may hold keys, so only we may read it."""
    path.touch(mode=0o600)
    # What JSON calls a string, a number or a truth value is the same in TOML.
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items()), encoding="utf-8")


def fleet_command(config: Path, *words: str) -> list[str]:
    """Return a command line of ours that takes its settings from a file, and nothing from the environment."""
    forget = [part for name in Settings.model_fields for part in ("-u", variable(name))]
    return ["env", *forget, f"{_CONFIG}={config}", sys.executable, "-m", "fleet", *words]


@asynccontextmanager
async def run_server(
    settings: Mapping[str, Value], folder: Path, log: Path, on_line: Callable[[LogLine], None]
) -> AsyncIterator[Server]:
    """Run `fleet up` beside the block; the block begins when it is ready.

    Nothing is taken from the environment, so that it never writes into anybody's Redis or spends anybody's money.

    Args:
        settings: By their names in the settings file.
        folder: For that file.
        log: File for its log.
        on_line: Called with every line of its log.

    Raises:
        Unavailable: It ended, or was not ready within 90 s.
    """
    config = folder / "fleet.toml"
    write_settings(settings, config)
    command = fleet_command(config, "up")
    ready = asyncio.Event()
    found: list[str] = []

    def take(raw: str) -> None:
        line = parse_log(raw)
        if line is None:
            return
        if line.message == _READY:
            found.append(line.text("ota"))
            ready.set()
        on_line(line)

    async with run_program("the server", command, log, take) as program:
        with suppress(TimeoutError):
            async with asyncio.timeout(READY_SECONDS):
                await ready.wait()
        if not found:
            raise Unavailable(f"the server was not up within {READY_SECONDS:g} s (log: {log})")
        yield Server(program.pid, found[0])
