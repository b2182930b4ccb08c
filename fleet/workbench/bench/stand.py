"""What the benchmarks of workers share: real processes side by side, and a look at what each of them uses."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import Unavailable
from fleet.workbench.bench.control import Child, child
from fleet.workbench.bench.figures import Percentiles, Spread
from fleet.workbench.bench.site import Place, read_settings, site
from fleet.workbench.bench.usage import Usage
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


class Stand:
    """The processes of one measurement.

    Args:
        place: Broker and Redis.
        workers: Those that own shards.
        crowd: Plays devices and edge.
        store: The Redis, to look into it.
    """

    def __init__(self, place: Place, workers: Sequence[Child], crowd: Child, store: Store) -> None:
        self.workers = workers
        self.crowd = crowd
        self.store = store
        self._pids = {
            "worker": [worker.pid for worker in workers],
            "redis": [place.redis],
            "broker": [place.broker],
            "load": [crowd.pid],
        }
        self.idle = dict.fromkeys(PARTS, 0.0)
        """What each part uses at rest: parts of a core."""

    def look(self) -> dict[str, Usage]:
        """Return what each part has used so far."""
        return {part: Usage.of(pids) for part, pids in self._pids.items()}

    async def rest(self) -> None:
        """Measure what everything uses when nothing happens."""
        self.idle = dict.fromkeys(PARTS, 0.0)
        await self.crowd.ask("tell")  # it has started when it answers
        await asyncio.sleep(_SETTLE_SECONDS)
        window = await self._window(self._nothing())
        self.idle = {part: cpu / window.seconds for part, cpu in window.cpu.items()}

    async def meet(self, connected: int, known: int) -> None:
        """Let devices connect and open sessions; others become known as if they had been here before."""
        await self.crowd.ask("connect", count=connected)
        await self.crowd.ask("hello", rate=MEETING_RATE, seconds=connected / MEETING_RATE, goodbye=False)
        await self.crowd.ask("copy", known=known)

    async def measure(self, verb: str, **arguments: object) -> Window:
        """Let the crowd do something, and return what it cost."""
        await asyncio.sleep(_SETTLE_SECONDS)
        return await self._window(self.crowd.ask(verb, **arguments))

    async def data(self) -> int:
        """Return the bytes that Redis keeps, without its buffers."""
        info = cast("Mapping[str, int]", await self.store.client.info("memory"))
        buffers = ("mem_clients_normal", "mem_aof_buffer", "mem_replication_backlog")
        return info["used_memory"] - sum(info.get(name, 0) for name in buffers)

    async def _nothing(self) -> dict[str, Any]:
        await asyncio.sleep(_IDLE_SECONDS)
        return {}

    async def _window(self, doing: Any) -> Window:
        clock = asyncio.get_running_loop().time
        began, before = clock(), self.look()
        done = await doing
        seconds, after = clock() - began, self.look()
        used = {part: after[part].cpu - before[part].cpu - self.idle[part] * seconds for part in PARTS}
        ms = done.get("ms", [])
        return Window(seconds, used, len(ms), done.get("begun", len(ms)) - len(ms), ms)


@asynccontextmanager
async def stand(workers: int = 1, settings: Mapping[str, Value] | None = None) -> AsyncIterator[Stand]:
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
        place = await enter(site(settings or {}))
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
        crowd = await enter(child("fleet.workbench.bench.crowd", "load", str(place.config)))
        await _until_spread(store, configured.shards, workers, started)
        yield Stand(place, started, crowd, store)


async def _until_spread(store: Store, shards: int, workers: int, started: Sequence[Child]) -> None:
    """Wait until each worker hears the devices of its share of the shards."""
    try:
        async with asyncio.timeout(_READY_SECONDS):
            while True:
                owners = [await _owner(store, shard) for shard in range(shards)]
                even = all(owners.count(owner) <= -(-shards // workers) for owner in set(owners))
                if "" not in owners and even and all([(await one.ask("tell"))["ready"] for one in started]):
                    return
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise Unavailable(f"the workers do not own all shards after {_READY_SECONDS:g} s") from None


async def _owner(store: Store, shard: int) -> str:
    return str(await store.client.hget(store.keys.own(shard), "w") or "")
