"""Runs what all roles need: Mosquitto with the plugin, Redis, the keys, and the demo model if none is configured."""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from fleet.adapters.files.keys_file import load_or_make_keys
from fleet.wire.identity import CredentialKeys
from fleet.workbench.cluster.options import ClusterOptions
from fleet.workbench.cluster.port_allocator import PortAllocator
from fleet.workbench.local_servers.mosquitto import build_plugin, run_mosquitto, until_accepting
from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.local_servers.process import Program, run_program
from fleet.workbench.local_servers.redis import run_redis
from fleet.workbench.local_servers.server import Value

_MQTT, _REDIS, _MODEL = 1883, 6379, 8010


@dataclass(frozen=True, slots=True)
class BackingServices:
    """The running services: `settings` of the roles, and `programs` with name and address of each."""

    settings: dict[str, Value]
    programs: list[tuple[str, Program, str]]


@asynccontextmanager
async def run_backing_services(
    options: ClusterOptions, allocator: PortAllocator, report: Callable[[str], None]
) -> AsyncIterator[BackingServices]:
    """Run the services during the block.

    Raises:
        ConfigError: A program is not installed, or the plugin cannot be built.
        Unavailable: A service ended, or was not ready in time.
    """
    broker, redis_data = options.data / "broker", options.data / "redis"
    for folder in (broker, redis_data):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Broker and roles read the same file, so that `fleet keys rotate` reaches both.
    keys = CredentialKeys(load_or_make_keys(broker))
    mqtt, redis = allocator.take(_MQTT), allocator.take(_REDIS)
    report("building the Mosquitto plugin")
    plugin = await build_plugin(broker)
    report("starting Mosquitto and Redis")
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        mosquitto = await enter(run_mosquitto(broker, mqtt, plugin, keys))
        store = await enter(run_redis(redis_data, redis, options.data / "redis.log", keep=True))
        settings: dict[str, Value] = {
            "mqtt_url": f"mqtt://{LOOPBACK}:{mqtt}",
            "mqtt_public": f"{LOOPBACK}:{mqtt}",
            "redis_url": f"redis://{LOOPBACK}:{redis}/0",
            "keys_file": str(broker / "keys"),
            # The plugin reads it in the folder of the keys.
            "revocations_file": str(broker / "revoked"),
        }
        programs = [
            ("Mosquitto", mosquitto, f"mqtt://{LOOPBACK}:{mqtt}"),
            ("Redis", store, str(settings["redis_url"])),
        ]
        if options.demo_model:
            port = allocator.take(_MODEL)
            command = [sys.executable, "-m", "fleet", "demo-llm", "--host", LOOPBACK, "--port", str(port)]
            model = await enter(run_program("the demo model", command, options.data / "demo-llm.log"))
            await until_accepting("the demo model", port)
            settings["llm_base_url"] = f"http://{LOOPBACK}:{port}/v1"
            programs.append(("demo model", model, str(settings["llm_base_url"])))
        yield BackingServices(settings, programs)
