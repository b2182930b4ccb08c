"""Runs separate servers for the demo: Debian's Mosquitto with fleet's plugin, and redis-server."""

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from fleet.wire.identity import CredentialKeys
from fleet.workbench.local_servers.mosquitto import build_plugin, run_mosquitto
from fleet.workbench.local_servers.ports import LOOPBACK, Ports, choose
from fleet.workbench.local_servers.redis import run_redis
from fleet.workbench.local_servers.server import Value


@asynccontextmanager
async def run_separate_servers(
    ports: Ports, folder: Path, logs: Path, report: Callable[[str], None]
) -> AsyncIterator[dict[str, Value]]:
    """Run a broker and a Redis during the block, and give the settings with which `fleet up` uses them.

    Args:
        ports: On which the broker listens.
        folder: For the plugin, configuration, keys and data; other users must not be able to read it.
        logs: Folder for their logs.
        report: Called with each step.

    Raises:
        ConfigError: A program is not installed, or the plugin cannot be built.
        Unavailable: A server ended, or was not ready in time.
    """
    report("building the Mosquitto plugin")
    plugin = await build_plugin(folder)
    keys = f"demo:{secrets.token_hex(24)}"
    redis_port = choose()
    async with AsyncExitStack() as stack:
        report("starting Mosquitto and Redis")
        await stack.enter_async_context(run_mosquitto(folder, ports.mqtt, plugin, CredentialKeys(keys)))
        await stack.enter_async_context(run_redis(folder, redis_port, logs / "redis.log", keep=False))
        yield {
            "mqtt_url": f"mqtt://{LOOPBACK}:{ports.mqtt}",
            "redis_url": f"redis://{LOOPBACK}:{redis_port}/0",
            "keys": keys,
        }
