"""A broker with our plugin and a Redis, each a process of its own, for one measurement."""

import asyncio
import secrets
import tempfile
import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from fleet.errors import ConfigError, Unavailable
from fleet.local.ports import LOOPBACK, accepts, choose
from fleet.local.process import find_program, finish, run_program
from fleet.local.server import Value, write_settings
from fleet.settings import Settings
from fleet.wire.identity import Keys

_SOURCES = Path(__file__).parents[2] / "mosquitto"
_UNLIMITED = {"rate_hellos": "100000/1000000", "rate_tools": "100000/1000000"}
"""A few simulated devices do what many would."""
_BUILD_SECONDS = 60.0
_READY_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where everything is, and the processes that serve it."""

    config: Path
    """The settings, for `read_settings`."""
    redis_url: str
    broker: int
    redis: int
    folder: Path


@asynccontextmanager
async def site(settings: Mapping[str, Value]) -> AsyncIterator[Place]:
    """Run both beside the block, on free ports of the loopback address; nothing of them is kept.

    Args:
        settings: Those of the roles that are not the usual ones.

    Raises:
        ConfigError: A program is missing, or the plugin cannot be built.
        Unavailable: One did not start, or ended.
    """
    secret = f"bench:{secrets.token_hex(16)}"
    mqtt, redis = choose(), choose()
    with tempfile.TemporaryDirectory(prefix="fleet-bench-") as name:
        folder = Path(name)
        config = await _configure(folder, mqtt, Keys(secret))
        store = [find_program("redis-server"), "--port", str(redis), "--bind", LOOPBACK]
        store += ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec", "--dir", name]
        async with (
            run_program("Redis", store, folder / "redis.log") as redis_program,
            run_program("Mosquitto", [find_program("mosquitto"), "-c", str(config)], folder / "broker.log") as broker,
        ):
            await _until_open(redis, mqtt)
            url = f"redis://{LOOPBACK}:{redis}/0"
            places: dict[str, Value] = {"mqtt_url": f"mqtt://{LOOPBACK}:{mqtt}", "redis_url": url, "keys": secret}
            path = folder / "fleet.toml"
            write_settings({**places, **_UNLIMITED, "public_host": LOOPBACK, "log_format": "json", **settings}, path)
            yield Place(path, url, broker.pid, redis_program.pid, folder)


def read_settings(path: Path) -> Settings:
    """Return the settings that a process of the benchmark was given."""
    return Settings(**tomllib.loads(path.read_text(encoding="utf-8")))


async def _configure(folder: Path, port: int, keys: Keys) -> Path:
    """Build the plugin and write the shipped configuration with what is different here."""
    if not (_SOURCES / "Makefile").is_file():
        raise ConfigError("the sources of the Mosquitto plugin are not here; run this in a checkout of fleet")
    log = folder / "make.log"
    command = [find_program("make"), "-C", str(_SOURCES), f"BUILD={folder}"]
    if await finish("make", command, log, _BUILD_SECONDS):
        raise ConfigError(f"cannot build the Mosquitto plugin: {log.read_text(errors='replace')[-500:]}")
    keys_file, config = folder / "keys", folder / "mosquitto.conf"
    keys_file.touch(mode=0o600)
    keys_file.write_text(keys.as_file())
    changes = {
        "listener": f"{port} {LOOPBACK}",
        "plugin": str(folder / "fleet_plugin.so"),
        "plugin_opt_keys_file": f"{keys_file}\nplugin_opt_messages_a_second 0",
    }
    lines = (_SOURCES / "mosquitto.conf").read_text(encoding="utf-8").splitlines()
    # Started by root, it would become another user, who cannot read this folder.
    config.write_text("\n".join(["user root", *(_changed(line, changes) for line in lines), ""]), encoding="utf-8")
    return config


def _changed(line: str, changes: dict[str, str]) -> str:
    option = line.partition(" ")[0]
    return f"{option} {changes[option]}" if option in changes else line


async def _until_open(*ports: int) -> None:
    try:
        async with asyncio.timeout(_READY_SECONDS):
            while not all(accepts(port) for port in ports):  # noqa: ASYNC110 - servers tell nobody when they are ready
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise Unavailable(f"Redis or Mosquitto was not ready within {_READY_SECONDS:g} s") from None
