"""What the benchmarks of workers share: real processes side by side, and the CPU time of each."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import cast

from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import Unavailable
from fleet.workbench.bench.control import Child, child
from fleet.workbench.bench.figures import Percentiles, Spread
from fleet.workbench.bench.servers import Servers, read_settings, servers
from fleet.workbench.bench.usage import CpuMeter
from fleet.workbench.local_servers.server import Value

PARTS = ("worker", "redis", "broker", "load")
"""All workers together, the servers, and what plays devices and edge."""
MEETING_RATE = 200.0
_IDLE_SECONDS = 1.5
_READY_SECONDS = 20.0
_SETTLE_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Window:
    """What happened between two looks at all processes."""

    seconds: float
    cpu: dict[str, float]
    """Seconds of each part, without what it uses at rest."""
    count: int
    """Operations that ended."""
    lost: int
    ms: list[float]
    """How long each took for the devices."""

    def us(self, part: str, count: float | None = None) -> float:
        """Return the CPU time of a part in microseconds an operation."""
        return self.cpu[part] / max(self.count if count is None else count, 1) * 1e6


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU time of one kind of operation in microseconds, by part, and how long it took for the devices."""

    us: dict[str, Spread]
    ms: Percentiles
    count: int
    lost: int
    """Operations that did not end in time."""

    @classmethod
    def of(cls, windows: Sequence[Window]) -> "Cost":
        return cls(
            us={part: Spread.of([window.us(part) for window in windows]) for part in PARTS},
            ms=Percentiles.of([ms for window in windows for ms in window.ms]),
            count=sum(window.count for window in windows),
            lost=sum(window.lost for window in windows),
        )


class Testbed:
    """The processes of one measurement.

    Args:
        place: Broker and Redis.
        workers: Those that own shards.
        load: Plays devices and edge.
        store: The Redis, to look into it.
    """

    def __init__(self, place: Servers, workers: Sequence[Child], load: Child, store: Store) -> None:
        self.workers = workers
        self.load = load
        self.store = store
        self.meter = CpuMeter(
            {
                "worker": [worker.pid for worker in workers],
                "redis": [place.redis],
                "broker": [place.broker],
                "load": [load.pid],
            }
        )

    async def rest(self) -> None:
        """Measure what everything uses when nothing happens."""
        await self.load.ask("state")  # it has started when it answers
        await asyncio.sleep(_SETTLE_SECONDS)
        await self.meter.rest(_IDLE_SECONDS)

    async def meet(self, connected: int, known: int) -> None:
        """Let devices connect and open sessions; others become known as if they had been here before."""
        await self.load.ask("connect", count=connected)
        await self.load.ask("hello", rate=MEETING_RATE, seconds=connected / MEETING_RATE, goodbye=False)
        await self.load.ask("copy", known=known)

    async def measure(self, command: str, **arguments: object) -> Window:
        """Let the load do something, and return what it cost."""
        await asyncio.sleep(_SETTLE_SECONDS)
        found = await self.meter.during(self.load.ask(command, **arguments))
        ms = found.result.get("ms", [])
        lost = found.result.get("begun", len(ms)) - len(ms)
        return Window(found.seconds, found.cpu, len(ms), lost, ms)

    async def data(self) -> int:
        """Return the bytes that Redis keeps, without its buffers."""
        info = cast("Mapping[str, int]", await self.store.client.info("memory"))
        buffers = ("mem_clients_normal", "mem_aof_buffer", "mem_replication_backlog")
        return info["used_memory"] - sum(info.get(name, 0) for name in buffers)


@asynccontextmanager
async def testbed(workers: int = 1, settings: Mapping[str, Value] | None = None) -> AsyncIterator[Testbed]:
    """Run everything beside the block, which begins when the workers own all shards.

    Args:
        workers: How many processes.
        settings: Those of the roles that are not the usual ones.

    Raises:
        ConfigError: A program is missing.
        Unavailable: A process ended or is not ready in time.
    """
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        place = await enter(servers(settings or {}))
        configured = read_settings(place.config)
        store = await Store.open(place.redis_url, configured.shards)
        stack.push_async_callback(store.close)
        started = [
            await enter(
                child(
                    "fleet.workbench.bench.worker",
                    "worker",
                    str(place.config),
                    str(place.folder / f"worker-{number}.log"),
                )
            )
            for number in range(workers)
        ]
        load = await enter(child("fleet.workbench.bench.mqtt_load", "load", str(place.config)))
        await _until_spread(store, configured.shards, workers, started)
        yield Testbed(place, started, load, store)


async def _until_spread(store: Store, shards: int, workers: int, started: Sequence[Child]) -> None:
    """Wait until each worker hears the devices of its share of the shards."""
    try:
        async with asyncio.timeout(_READY_SECONDS):
            while True:
                owners = [await _owner(store, shard) for shard in range(shards)]
                even = all(owners.count(owner) <= -(-shards // workers) for owner in set(owners))
                if "" not in owners and even and all([(await one.ask("state"))["ready"] for one in started]):
                    return
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise Unavailable(f"the workers do not own all shards after {_READY_SECONDS:g} s") from None


async def _owner(store: Store, shard: int) -> str:
    return str(await store.client.hget(store.keys.own(shard), "w") or "")
