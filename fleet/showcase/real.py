"""The demo with separate servers: Debian's Mosquitto with fleet's plugin, and redis-server."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import fleet
from fleet.errors import ConfigError, Unavailable
from fleet.local.ports import LOOPBACK, Ports, accepts, choose
from fleet.local.process import find_program, finish, run_program
from fleet.local.server import Value
from fleet.wire.identity import Keys

BUILD_SECONDS = 120.0
READY_SECONDS = 15.0
_PROBE_SECONDS = 0.05
_SOURCES = Path(fleet.__file__).parents[1] / "mosquitto"


@asynccontextmanager
async def run_real_servers(
    ports: Ports, folder: Path, logs: Path, tell: Callable[[str], None]
) -> AsyncIterator[dict[str, Value]]:
    """Run a broker and a Redis beside the block, and yield the settings that lead `fleet up` to them.

    Args:
        ports: Where the broker listens.
        folder: For the plugin, configuration, keys and data; nobody else can read it.
        logs: Folder for their logs.
        tell: Told what is being done.

    Raises:
        ConfigError: A program is not installed, or the plugin cannot be built.
        Unavailable: A server ended, or did not get ready.
    """
    tell("building the Mosquitto plugin")
    plugin = await build_plugin(folder, logs / "plugin.log")
    keys = f"demo:{secrets.token_hex(24)}"
    redis_port = choose()
    async with AsyncExitStack() as stack:
        tell("starting Mosquitto and Redis")
        config = write_config(folder, ports.mqtt, plugin, Keys(keys))
        mosquitto = [find_program("mosquitto"), "-c", str(config)]
        await stack.enter_async_context(run_program("mosquitto", mosquitto, logs / "mosquitto.log"))
        await _until_accepting("mosquitto", ports.mqtt)
        redis = [find_program("redis-server"), "--bind", LOOPBACK, "--port", str(redis_port), "--dir", str(folder)]
        redis += ["--save", "", "--appendonly", "no"]
        await stack.enter_async_context(run_program("redis-server", redis, logs / "redis.log"))
        await _until_accepting("redis-server", redis_port)
        yield {
            "mqtt_url": f"mqtt://{LOOPBACK}:{ports.mqtt}",
            "redis_url": f"redis://{LOOPBACK}:{redis_port}/0",
            "keys": keys,
        }


async def build_plugin(folder: Path, log: Path) -> Path:
    """Build the plugin into a folder and return its path.

    Raises:
        ConfigError: There are no sources, no compiler or no headers.
        Unavailable: It takes too long.
    """
    if not (_SOURCES / "Makefile").is_file():
        raise ConfigError("--real needs the sources of the Mosquitto plugin: run it from a checkout")
    command = [find_program("make"), "-C", str(_SOURCES), f"BUILD={folder}"]
    if await finish("make", command, log, BUILD_SECONDS):
        raise ConfigError(f"the Mosquitto plugin cannot be built (log: {log})")
    return folder / "fleet_plugin.so"


def write_config(folder: Path, port: int, plugin: Path, keys: Keys) -> Path:
    """Write the keys and the shipped configuration with places of our own; return the configuration's path."""
    keys_file = folder / "keys"
    keys_file.touch(mode=0o600)
    keys_file.write_text(keys.as_file(), encoding="utf-8")
    changes = {
        # Started by root, it would otherwise become the user mosquitto, who cannot read our folder.
        "user": "root",
        "listener": f"{port} {LOOPBACK}",
        "plugin": str(plugin),
        "plugin_opt_keys_file": str(keys_file),
    }
    config = folder / "mosquitto.conf"
    config.write_text(adapt((_SOURCES / "mosquitto.conf").read_text(encoding="utf-8"), changes), encoding="utf-8")
    return config


def adapt(shipped: str, changes: dict[str, str]) -> str:
    """Return a configuration with the values of some options changed.

    Options that it does not have go first: after `listener` they might become one of that listener.
    """
    left = dict(changes)
    lines = []
    for line in shipped.splitlines():
        option = line.partition(" ")[0]
        lines.append(f"{option} {left.pop(option)}" if option in left else line)
    return "\n".join([*(f"{option} {value}" for option, value in left.items()), *lines, ""])


async def _until_accepting(what: str, port: int) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(READY_SECONDS):
            while not accepts(port):  # noqa: ASYNC110 - another process's state
                await asyncio.sleep(_PROBE_SECONDS)
            return
    raise Unavailable(f"{what} was not ready within {READY_SECONDS:g} s")
