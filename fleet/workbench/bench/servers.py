"""A broker with our plugin and a Redis, each a process of its own, for one measurement."""

import secrets
import tempfile
import tomllib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from fleet.ground.settings import Settings
from fleet.wire.identity import CredentialKeys
from fleet.workbench.bench.outer_brokers import OuterBroker, outer_brokers
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
    devices_config: Path
    """The same with the broker of the devices that talk, if that is another one."""
    redis_url: str
    broker: int
    """Where workers connect."""
    outer: Sequence[OuterBroker]
    """Where devices connect; empty: at the same broker."""
    redis: int
    folder: Path

    @property
    def brokers(self) -> list[int]:
        """The processes of all brokers."""
        return [self.broker, *(one.pid for one in self.outer)]


@asynccontextmanager
async def servers(settings: Mapping[str, Value], outer: int = 0) -> AsyncIterator[Servers]:
    """Run both beside the block, on free ports of the loopback address; nothing of them is kept.

    Args:
        settings: Those of the roles that are not the usual ones.
        outer: How many brokers devices have of their own; then the one of the workers has no plugin.

    Raises:
        ConfigError: A program is missing, or the plugin cannot be built.
        Unavailable: One did not start, or ended.
    """
    secret = f"bench:{secrets.token_hex(16)}"
    mqtt, redis = choose(), choose()
    with tempfile.TemporaryDirectory(prefix="fleet-bench-") as name:
        folder = Path(name)
        plugin, keys = await build_plugin(folder), CredentialKeys(secret)
        options = {} if outer else {"plugin_opt_messages_a_second": "0"}
        async with (
            run_redis(folder, redis, folder / "redis.log", keep=True) as redis_program,
            run_mosquitto(folder, mqtt, None if outer else plugin, keys, options) as broker,
            outer_brokers(outer, folder, mqtt, plugin, keys) as outside,
        ):
            url = f"redis://{LOOPBACK}:{redis}/0"
            places: dict[str, Value] = {"mqtt_url": f"mqtt://{LOOPBACK}:{mqtt}", "redis_url": url, "keys": secret}
            public = outside[0].address if outside else f"{LOOPBACK}:{mqtt}"
            places |= {"mqtt_public": public, "data_dir": str(folder)}
            places |= {**UNLIMITED, "public_host": LOOPBACK, "log_format": "json", **settings}
            path, of_devices = folder / "fleet.toml", folder / "devices.toml"
            write_settings(places, path)
            write_settings({**places, "mqtt_url": f"mqtt://{public}"}, of_devices)
            yield Servers(path, of_devices, url, broker.pid, outside, redis_program.pid, folder)


def read_settings(path: Path) -> Settings:
    """Return the settings that a process of the benchmark was given."""
    return Settings(**tomllib.loads(path.read_text(encoding="utf-8")))
