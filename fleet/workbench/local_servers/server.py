"""Runs `fleet up` as a child process, with its settings in a file and a callback for its log."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from fleet.ground.errors import Unavailable
from fleet.ground.settings import Settings, variable
from fleet.ground.settings.fields import PREFIX
from fleet.workbench.local_servers.log_line import LogLine, parse_log
from fleet.workbench.local_servers.module_command import module_command
from fleet.workbench.local_servers.ports import LOOPBACK, Ports
from fleet.workbench.local_servers.process import run_program

READY_SECONDS = 90.0
_READY = "fleet is up"
_CONFIG = f"{PREFIX}CONFIG"

Value = str | int | float | bool


class Server:
    """A running server: its process id, and `ota_url`, its bootstrap address."""

    def __init__(self, pid: int, ota_url: str) -> None:
        self.pid = pid
        self.ota_url = ota_url


def settings_for(ports: Ports, data: Path) -> dict[str, Value]:
    """Return the settings of a server that listens on loopback only and logs personal data."""
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
    """Write settings as a TOML file for FLEET_CONFIG; only its owner can read it, because it may hold keys."""
    path.touch(mode=0o600)
    # JSON and TOML have the same syntax for strings, numbers and booleans.
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items()), encoding="utf-8")


def fleet_command(config: Path, *words: str) -> list[str]:
    """Return a `fleet` command line that reads its settings from a file only, not from the environment."""
    unset = [part for name in Settings.model_fields for part in ("-u", variable(name))]
    return ["env", *unset, f"{_CONFIG}={config}", *module_command("fleet", *words)]


@asynccontextmanager
async def run_server(
    settings: Mapping[str, Value], folder: Path, log: Path, on_line: Callable[[LogLine], None]
) -> AsyncIterator[Server]:
    """Run `fleet up` during the block; the block begins when it is ready.

    It reads no settings from the environment, so that it never uses the caller's Redis or paid models.

    Args:
        settings: By their names in the settings file.
        folder: For that file.
        log: File for its log.
        on_line: Called with each line of its log.

    Raises:
        Unavailable: It ended, or was not ready within 90 s.
    """
    config = folder / "fleet.toml"
    write_settings(settings, config)
    command = fleet_command(config, "up")
    ready = asyncio.Event()
    ota_urls: list[str] = []

    def read(raw: str) -> None:
        line = parse_log(raw)
        if line is None:
            return
        if line.message == _READY:
            ota_urls.append(line.text("ota"))
            ready.set()
        on_line(line)

    async with run_program("the server", command, log, read) as program:
        with suppress(TimeoutError):
            async with asyncio.timeout(READY_SECONDS):
                await ready.wait()
        if not ota_urls:
            raise Unavailable(f"the server was not up within {READY_SECONDS:g} s (log: {log})")
        yield Server(program.pid, ota_urls[0])
