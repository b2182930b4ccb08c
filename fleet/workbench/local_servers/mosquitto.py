"""Runs a Mosquitto on this machine with the checkout's configuration, with or without fleet's plugin."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import fleet
from fleet.ground.errors import ConfigError, Unavailable
from fleet.wire.identity import CredentialKeys
from fleet.workbench.local_servers.ports import LOOPBACK, accepts
from fleet.workbench.local_servers.process import Program, find_program, run_program, run_to_end

BUILD_SECONDS = 240.0
READY_SECONDS = 120.0
_PROBE_SECONDS = 0.02
_SOURCES = Path(fleet.__file__).parents[1] / "mosquitto"
_PLUGIN = "plugin"


async def build_plugin(folder: Path) -> Path:
    """Build the plugin into a folder and return its path.

    Raises:
        ConfigError: The sources, the compiler or the headers are missing.
        Unavailable: The build takes too long.
    """
    if not (_SOURCES / "Makefile").is_file():
        raise ConfigError("this needs the sources of the Mosquitto plugin: run it from a checkout")
    log = folder / "plugin.log"
    if await run_to_end("make", [find_program("make"), "-C", str(_SOURCES), f"BUILD={folder}"], log, BUILD_SECONDS):
        raise ConfigError(
            "the Mosquitto plugin cannot be built; it needs gcc, mosquitto-dev and libssl-dev:\n" + _end_of(log)
        )
    return folder / "fleet_plugin.so"


@asynccontextmanager
async def run_mosquitto(
    folder: Path, port: int, plugin: Path | None, keys: CredentialKeys, options: Mapping[str, str] | None = None
) -> AsyncIterator[Program]:
    """Run Mosquitto with the shipped configuration during the block; without the plugin it accepts every client.

    Args:
        folder: For configuration, keys and log; other users must not be able to read it.
        port: To listen on, on the loopback address.
        plugin: From `build_plugin`; None: without it.
        keys: Keys of the clients' passwords.
        options: Options of the configuration that replace the shipped ones.

    Raises:
        ConfigError: Mosquitto is not installed.
        Unavailable: Mosquitto ended, or was not ready in time.
    """
    # If root starts Mosquitto, it would otherwise run as the user mosquitto, who cannot read the folder.
    changes = {"user": "root", "listener": f"{port} {LOOPBACK}", **(options or {})}
    shipped = (_SOURCES / "mosquitto.conf").read_text(encoding="utf-8")
    if plugin is None:
        shipped = _without_plugin(shipped)
        changes["allow_anonymous"] = "true"
    else:
        keys_file = folder / "keys"
        keys_file.touch(mode=0o600)
        keys_file.write_text(keys.as_file(), encoding="utf-8")
        changes |= {_PLUGIN: str(plugin), "plugin_opt_keys_file": str(keys_file)}
    config = folder / f"mosquitto-{port}.conf"
    config.write_text(with_options(shipped, changes), encoding="utf-8")
    command = [find_program("mosquitto"), "-c", str(config)]
    async with run_program("mosquitto", command, folder / f"mosquitto-{port}.log") as program:
        await until_accepting("mosquitto", port)
        yield program


def with_options(shipped: str, changes: Mapping[str, str]) -> str:
    """Return a configuration with the values of some options changed.

    Options that it does not have are put first: after `listener` they might belong to that listener. Options of a
    plugin must follow the plugin.
    """
    left = dict(changes)
    lines: list[str] = []
    for line in shipped.splitlines():
        option = line.partition(" ")[0]
        lines.append(f"{option} {left.pop(option)}" if option in left else line)
        if option == _PLUGIN:
            added = [name for name in left if name.startswith("plugin_opt_") and f"\n{name} " not in shipped]
            lines += [f"{name} {left.pop(name)}" for name in added]
    return "\n".join([*(f"{option} {value}" for option, value in left.items()), *lines, ""])


async def until_accepting(what: str, port: int, seconds: float = READY_SECONDS) -> None:
    """Wait until a server accepts connections.

    Raises:
        Unavailable: It does not accept connections in time.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not accepts(port):  # noqa: ASYNC110 - another process has no event for it
                await asyncio.sleep(_PROBE_SECONDS)
            return
    raise Unavailable(f"{what} was not ready within {seconds:g} s")


def _without_plugin(shipped: str) -> str:
    lines = shipped.splitlines()
    return "\n".join(line for line in lines if not line.startswith((_PLUGIN, "allow_anonymous")))


def _end_of(log: Path, characters: int = 1000) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-characters:]
