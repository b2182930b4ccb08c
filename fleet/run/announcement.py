"""Tells the site which process this is, and whether it is well, for the console."""

import asyncio
import importlib.metadata
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

from fleet import DISTRIBUTION
from fleet.adapters.net.http.readiness import Readiness
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.processes import ANNOUNCE_SECONDS, Processes, ProcessRecord
from fleet.ground.errors import Unavailable
from fleet.ground.tasks import running
from fleet.run.draining import new_process_id


@asynccontextmanager
async def announced(
    store: Store, role: str, readiness: Readiness, broker: MqttAddress | None = None
) -> AsyncIterator[None]:
    """Announce the process during the block.

    Args:
        store: Redis.
        role: Of the process: the name of its command.
        readiness: Of the process.
        broker: To which it connects.
    """
    processes, name, since = Processes(store), new_process_id(), round(datetime.now(UTC).timestamp() * 1000)
    version = importlib.metadata.version(DISTRIBUTION)
    address = f"{broker.host}:{broker.port}" if broker is not None else ""

    async def announce() -> None:
        while True:
            faults = await readiness.look()
            connected = readiness.parts.get("broker", False)
            # While Redis is away nobody can look either.
            with suppress(Unavailable):
                await processes.announce(ProcessRecord(name, role, version, since, faults, address, connected))
            await asyncio.sleep(ANNOUNCE_SECONDS)

    try:
        async with running("announcement", announce):
            yield
    finally:
        with suppress(Unavailable):
            await processes.retire(name)
