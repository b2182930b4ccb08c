"""A Mosquitto of our own on this machine, with or without fleet's plugin, as the checkout ships and configures it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import fleet
from fleet.ground.errors import ConfigError, Unavailable
from fleet.wire.identity import CredentialKeys
from fleet.workbench.local_servers.ports import LOOPBACK, accepts
from fleet.workbench.local_servers.process import Program, find_program, finish, run_program

BUILD_SECONDS = 120.0
READY_SECONDS = 15.0
_PROBE_SECONDS = 0.02
_SOURCES = Path(fleet.__file__).parents[1] / "mosquitto"
_PLUGIN = "plugin"


async def build_plugin(folder: Path) -> Path:
    """Build the plugin into a folder and return its path.

    Raises:
        ConfigError: There are no sources, no compiler or no headers.
        Unavailable: It takes too long.
    """
    if not (_SOURCES / "Makefile").is_file():
        raise ConfigError("this needs the sources of the Mosquitto plugin: run it from a checkout")
    log = folder / "plugin.log"
    if await finish("make", [find_program("make"), "-C", str(_SOURCES), f"BUILD={folder}"], log, BUILD_SECONDS):
        raise ConfigError(
            "the Mosquitto plugin cannot be built; it needs gcc, mosquitto-dev and libssl-dev:\n" + _end_of(log)
        )
    return folder / "fleet_plugin.so"


@asynccontextmanager
async def run_mosquitto(
    folder: Path, port: int, plugin: Path | None, keys: CredentialKeys, options: Mapping[str, str] | None = None
) -> AsyncIterator[Program]:
    """Run it with the shipped configuration beside the block; without plugin it lets everybody in.

    Args:
        folder: For configuration, keys and log; nobody else may read it.
        port: To listen on, on the loopback address.
        plugin: From `build_plugin`.
        keys: Let clients in.
        options: Of its configuration that are to be others.

    Raises:
        ConfigError: It is not installed.
        Unavailable: It ended, or did not get ready.
    """
    # Started by root, it would otherwise become the user mosquitto, who cannot read our folder.
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
    config.write_text(adapt(shipped, changes), encoding="utf-8")
    command = [find_program("mosquitto"), "-c", str(config)]
    async with run_program("mosquitto", command, folder / f"mosquitto-{port}.log") as program:
        await until_accepting("mosquitto", port)
        yield program


def adapt(shipped: str, changes: Mapping[str, str]) -> str:
    """Return a configuration with the values of some options changed.

    Options that it does not have go first: after `listener` they might become one of that listener. Those of a plugin
    must follow the plugin.
    """
    left = dict(changes)
    lines: list[str] = []
    for line in shipped.splitlines():
        option = line.partition(" ")[0]
        lines.append(f"{option} {left.pop(option)}" if option in left else line)
        if option == _PLUGIN:
            of_it = [name for name in left if name.startswith("plugin_opt_") and f"\n{name} " not in shipped]
            lines += [f"{name} {left.pop(name)}" for name in of_it]
    return "\n".join([*(f"{option} {value}" for option, value in left.items()), *lines, ""])


async def until_accepting(what: str, port: int) -> None:
    """Wait until a server takes connections.

    Raises:
        Unavailable: It does not in time.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(READY_SECONDS):
            while not accepts(port):  # noqa: ASYNC110 - another process's state
                await asyncio.sleep(_PROBE_SECONDS)
            return
    raise Unavailable(f"{what} was not ready within {READY_SECONDS:g} s")


def _without_plugin(shipped: str) -> str:
    lines = shipped.splitlines()
    return "\n".join(line for line in lines if not line.startswith((_PLUGIN, "allow_anonymous")))


def _end_of(log: Path, characters: int = 1000) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-characters:]
