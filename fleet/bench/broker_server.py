"""A Mosquitto of its own for a benchmark, with or without fleet's plugin, and the CPU time that it has used."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import fleet
from fleet.errors import ConfigError, Unavailable
from fleet.local.ports import LOOPBACK, accepts, choose
from fleet.local.process import find_program, finish, run_program
from fleet.wire.identity import Keys

SOURCES = Path(fleet.__file__).parents[1] / "mosquitto"
_BUILD_SECONDS = 120.0
_READY_SECONDS = 15.0
_PROBE_SECONDS = 0.02
_OF_THE_PLUGIN = ("plugin", "plugin_opt_keys_file", "plugin_opt_revoked_file", "allow_anonymous")


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker that runs; `keys` let clients in, without plugin anybody comes in."""

    port: int
    pid: int
    keys: Keys

    def cpu(self) -> float:
        """Return the seconds of CPU that it has used; it has one thread."""
        try:
            return int(Path(f"/proc/{self.pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9
        except (OSError, IndexError, ValueError):
            return _ticks(self.pid) / os.sysconf("SC_CLK_TCK")


def _ticks(pid: int) -> int:
    """Return user and system time; coarse, for kernels that keep no finer account."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, IndexError, ValueError) as error:
        raise Unavailable(f"the CPU time of process {pid} cannot be read") from error


async def build_plugin(folder: Path) -> Path:
    """Build the plugin into a folder and return its path.

    Raises:
        ConfigError: There are no sources, no compiler or no headers.
        Unavailable: It takes too long.
    """
    if not (SOURCES / "Makefile").is_file():
        raise ConfigError("this benchmark needs the sources of the Mosquitto plugin: run it from a checkout")
    log = folder / "plugin.log"
    if await finish("make", [find_program("make"), "-C", str(SOURCES), f"BUILD={folder}"], log, _BUILD_SECONDS):
        raise ConfigError(
            "the Mosquitto plugin cannot be built; it needs gcc, mosquitto-dev and libssl-dev:\n" + _end_of(log)
        )
    return folder / "fleet_plugin.so"


async def version(folder: Path) -> str:
    """Return how the broker calls itself."""
    log = folder / "version.log"
    await finish("mosquitto", [find_program("mosquitto"), "-h"], log, _READY_SECONDS)
    return log.read_text(encoding="utf-8", errors="replace").partition("\n")[0].strip()


@asynccontextmanager
async def running_broker(folder: Path, plugin: Path | None) -> AsyncIterator[Broker]:
    """Run a broker with the shipped configuration beside the block; without plugin it lets everybody in.

    Raises:
        ConfigError: It is not installed.
        Unavailable: It ended, or did not get ready.
    """
    port, keys = choose(), Keys(f"bench:{secrets.token_hex(24)}")
    name = "with" if plugin else "without"
    config = folder / f"{name}.conf"
    config.write_text(_config(port, folder, plugin, keys), encoding="utf-8")
    command = [find_program("mosquitto"), "-c", str(config)]
    async with run_program("mosquitto", command, folder / f"{name}.log") as program:
        await _until_accepting(port)
        yield Broker(port, program.pid, keys)


def _config(port: int, folder: Path, plugin: Path | None, keys: Keys) -> str:
    shipped = (SOURCES / "mosquitto.conf").read_text(encoding="utf-8").splitlines()
    kept = [line for line in shipped if line.partition(" ")[0] not in _OF_THE_PLUGIN]
    security = ["allow_anonymous true"]
    if plugin:
        keys_file = folder / "keys"
        keys_file.touch(mode=0o600)
        keys_file.write_text(keys.as_file(), encoding="utf-8")
        security = ["allow_anonymous false", f"plugin {plugin}", f"plugin_opt_keys_file {keys_file}"]
        security.append("plugin_opt_messages_a_second 0")
    # Started by root, it would otherwise become the user mosquitto, who cannot read our folder.
    listener = [f"listener {port} {LOOPBACK}" if line.startswith("listener ") else line for line in kept]
    return "\n".join(["user root", *security, *listener, ""])


async def _until_accepting(port: int) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(_READY_SECONDS):
            while not accepts(port):  # noqa: ASYNC110 - another process's state
                await asyncio.sleep(_PROBE_SECONDS)
            return
    raise Unavailable(f"mosquitto was not ready within {_READY_SECONDS:g} s")


def _end_of(log: Path, characters: int = 1000) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-characters:]
