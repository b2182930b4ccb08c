"""A broker with our plugin and a Redis, each a process of its own, for one measurement."""

import secrets
import tempfile
import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from fleet.ground.settings import Settings
from fleet.wire.identity import CredentialKeys
from fleet.workbench.local_servers.mosquitto import build_plugin, run_mosquitto
from fleet.workbench.local_servers.ports import LOOPBACK, choose
from fleet.workbench.local_servers.redis import run_redis
from fleet.workbench.local_servers.server import Value, write_settings

UNLIMITED: Mapping[str, Value] = dict.fromkeys(("rate_hellos", "rate_tools", "rate_address"), "100000/1000000")
"""A few simulated devices do what many would, and all have one address."""
NO_SPEECH: Mapping[str, Value] = dict.fromkeys(("asr_base_url", "tts_base_url"), f"http://{LOOPBACK}:9/v1")
"""Nobody speaks: models that cannot be reached cost neither memory nor the time to load them."""


@dataclass(frozen=True, slots=True)
class Servers:
    """Where everything is, and the processes that serve it."""

    config: Path
    """The settings, for `read_settings`."""
    redis_url: str
    broker: int
    redis: int
    folder: Path


@asynccontextmanager
async def servers(settings: Mapping[str, Value]) -> AsyncIterator[Servers]:
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
        plugin = await build_plugin(folder)
        async with (
            run_redis(folder, redis, folder / "redis.log", keep=True) as redis_program,
            run_mosquitto(
                folder, mqtt, plugin, CredentialKeys(secret), {"plugin_opt_messages_a_second": "0"}
            ) as broker,
        ):
            url = f"redis://{LOOPBACK}:{redis}/0"
            places: dict[str, Value] = {"mqtt_url": f"mqtt://{LOOPBACK}:{mqtt}", "redis_url": url, "keys": secret}
            places |= {"mqtt_public": f"{LOOPBACK}:{mqtt}", "data_dir": str(folder)}
            path = folder / "fleet.toml"
            write_settings({**places, **UNLIMITED, "public_host": LOOPBACK, "log_format": "json", **settings}, path)
            yield Servers(path, url, broker.pid, redis_program.pid, folder)


def read_settings(path: Path) -> Settings:
    """Return the settings that a process of the benchmark was given."""
    return Settings(**tomllib.loads(path.read_text(encoding="utf-8")))
