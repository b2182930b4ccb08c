"""What the benchmarks of workers share: real processes side by side, and the CPU time of each."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import cast

from fleet.adapters.redis import keys
from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import Unavailable
from fleet.workbench.bench.control import Child, child
from fleet.workbench.bench.figures import Percentiles, Spread
from fleet.workbench.bench.servers import NO_SPEECH, Servers, read_settings, servers
from fleet.workbench.bench.usage import CpuMeter
from fleet.workbench.local_servers.ports import LOOPBACK, choose
from fleet.workbench.local_servers.process import Program, run_program
from fleet.workbench.local_servers.server import Value, fleet_command

PARTS = ("worker", "edge", "redis", "broker", "all", "load")
"""All workers together, the edge, the servers, all of these together, and what plays the devices."""
MEETING_RATE = 200.0
_IDLE_SECONDS = 1.5
_READY_SECONDS = 120.0
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
    rate: float = 0.0
    """Operations a second."""

    @classmethod
    def of(cls, windows: Sequence[Window]) -> "Cost":
        return cls(
            us={part: Spread.of([window.us(part) for window in windows]) for part in windows[0].cpu},
            ms=Percentiles.of([ms for window in windows for ms in window.ms]),
            count=sum(window.count for window in windows),
            lost=sum(window.lost for window in windows),
            rate=sum(window.count for window in windows) / sum(window.seconds for window in windows),
        )


class Site:
    """A server and the process that plays its devices.

    Args:
        parts: Process ids of the server, by part.
        load: Plays the devices.
    """

    def __init__(self, parts: Mapping[str, Sequence[int]], load: Child) -> None:
        self.load = load
        together = [pid for pids in parts.values() for pid in pids]
        self.meter = CpuMeter({**parts, "all": together, "load": [load.pid]})

    async def begin_echo(self) -> bool:
        """Let the server send back what it hears, from now on; return False if it cannot."""
        return False

    async def rest(self) -> None:
        """Measure what everything uses when nothing happens."""
        await self.load.ask("state")  # it has started when it answers
        await asyncio.sleep(_SETTLE_SECONDS)
        await self.meter.rest(_IDLE_SECONDS)

    async def arrive(self, count: int, tools: int = 0) -> Window:
        """Let devices connect that bootstrap has seen; return what connecting, signing in and MCP's start cost."""
        await self.load.ask("introduce", count=count, tools=tools)
        return await self.measure("connect")

    async def measure(self, command: str, **arguments: object) -> Window:
        """Let the load do something, and return what it cost."""
        await asyncio.sleep(_SETTLE_SECONDS)
        found = await self.meter.during(self.load.ask(command, **arguments))
        ms = found.result.get("ms", [])
        lost = found.result.get("begun", len(ms)) - len(ms)
        return Window(found.seconds, found.cpu, len(ms), lost, ms)


class Testbed(Site):
    """Fleet's roles as processes of their own.

    Args:
        place: Broker and Redis.
        workers: Those that own shards.
        edge: Process ids of the real edge; without one the load plays it.
        load: Plays the devices.
        store: The Redis, to look into it.
    """

    def __init__(
        self, place: Servers, workers: Sequence[Child], edge: Sequence[int], load: Child, store: Store
    ) -> None:
        self.place = place
        self.workers = workers
        self.store = store
        pids = [worker.pid for worker in workers]
        super().__init__({"worker": pids, "edge": edge, "redis": [place.redis], "broker": place.brokers}, load)

    async def meet(self, connected: int, known: int) -> None:
        """Let devices connect and open sessions; others become known as if they had been here before."""
        await self.arrive(connected)
        await self.load.ask("hello", rate=MEETING_RATE, seconds=connected / MEETING_RATE, goodbye=False)
        await self.load.ask("copy", known=known)

    async def data(self) -> int:
        """Return the bytes that Redis keeps, without its buffers."""
        info = cast("Mapping[str, int]", await self.store.client.info("memory"))
        buffers = ("mem_clients_normal", "mem_aof_buffer", "mem_replication_backlog")
        return info["used_memory"] - sum(info.get(name, 0) for name in buffers)


@asynccontextmanager
async def testbed(
    workers: int = 1, settings: Mapping[str, Value] | None = None, *, edge: bool = False, outer: int = 0
) -> AsyncIterator[Testbed]:
    """Run everything beside the block, which begins when the workers own all shards and an edge takes sessions.

    Args:
        workers: How many processes.
        settings: Those of the roles that are not the usual ones.
        edge: Whether a real edge runs; otherwise the load plays it, and texts stand for what users say.
        outer: See `servers`.

    Raises:
        ConfigError: A program is missing.
        Unavailable: A process ended or is not ready in time.
    """
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        place = await enter(servers({**_edge_settings(), **(settings or {})}, outer))
        configured = read_settings(place.config)
        store = await Store.open(place.redis_url, configured.shards)
        stack.push_async_callback(store.close)
        config, module = str(place.config), "fleet.workbench.bench.worker"
        started = [
            await enter(child(module, "worker", config, str(place.folder / f"worker-{number}.log")))
            for number in range(workers)
        ]
        edges = [(await enter(_real_edge(place))).pid] if edge else []
        kind, of_devices = "fleet" if edge else "stub", str(place.devices_config)
        load = await enter(child("fleet.workbench.bench.mqtt_load", "load", kind, of_devices))
        await _soon("the workers do not own all shards", _until_spread(store, configured.shards, workers, started))
        await _soon("no edge takes sessions", _until_announced(store))
        yield Testbed(place, started, edges, load, store)


def _edge_settings() -> dict[str, Value]:
    udp = choose(kind=socket.SOCK_DGRAM)
    return {**NO_SPEECH, "udp_host": LOOPBACK, "udp_port": udp, "udp_public": f"{LOOPBACK}:{udp}", "metrics_port": 0}


def _real_edge(place: Servers) -> AbstractAsyncContextManager[Program]:
    return run_program("the edge", fleet_command(place.config, "edge"), place.folder / "edge.log")


async def _soon(failure: str, ready: Awaitable[None]) -> None:
    try:
        async with asyncio.timeout(_READY_SECONDS):
            await ready
    except TimeoutError:
        raise Unavailable(f"{failure} after {_READY_SECONDS:g} s") from None


async def _until_announced(store: Store) -> None:
    while not await store.client.smembers(keys.EDGES):  # noqa: ASYNC110 - another process has no event for it
        await asyncio.sleep(0.1)


async def _until_spread(store: Store, shards: int, workers: int, started: Sequence[Child]) -> None:
    """Wait until each worker hears the devices of its share of the shards."""
    while True:
        owners = [await _owner(store, shard) for shard in range(shards)]
        even = all(owners.count(owner) <= -(-shards // workers) for owner in set(owners))
        if "" not in owners and even and all([(await one.ask("state"))["ready"] for one in started]):
            return
        await asyncio.sleep(0.1)


async def _owner(store: Store, shard: int) -> str:
    return str(await store.client.hget(store.keys.own(shard), "w") or "")
