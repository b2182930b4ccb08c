"""`scripts/bench registry`: how long searches and counts over a large registry take, over HTTP."""

import asyncio
import http.client
import json
import os
import random
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, get_args
from urllib.parse import quote

from rich.console import Console
from rich.table import Table

from fleet.adapters.sql.database import Database, database_url
from fleet.adapters.sql.migrate import upgrade
from fleet.adapters.sql.token_rows import TokenRows
from fleet.core.permissions import SCOPES
from fleet.roles.control.access import digest_of_token
from fleet.workbench.bench.experiment import Experiment, Progress
from fleet.workbench.bench.figures import Percentiles
from fleet.workbench.bench.role_process import role_process
from fleet.workbench.bench.usage import CpuMeter
from fleet.workbench.local_servers.ports import LOOPBACK, choose
from fleet.workbench.local_servers.redis import run_redis
from tests.benchmarks.registry_data import BATCHES, FLOORS, SITES, WORDS, fill, fill_redis
from tests.support.postgres_server import PostgresServer
from tests.support.process import running

Engine = Literal["sqlite", "postgresql"]
ENGINES: tuple[Engine, ...] = get_args(Engine)
MARKS_MS = {"page": (10.0, 50.0), "substring": (None, 100.0), "facets": (None, 100.0)}
"""What p50 and p99 should be at most."""
TOKEN = "flt_bench"
SHARDS = 16
_START_SECONDS = 300.0
"""For a machine that is busy with other work."""
_PAGES = 5
"""Pages that are read of one search."""


class ServedRegistry(NamedTuple):
    """Control: its process, its port, and the address of its Redis."""

    pid: int
    port: int
    redis_url: str


@dataclass(frozen=True, slots=True)
class RegistryResult:
    """Requests of one kind to one engine."""

    engine: str
    devices: int
    kind: str
    requests: int
    ms: Percentiles
    cpu_ms: float
    """CPU of control a request; with SQLite that of the database is part of it."""
    slowest: str
    """The query that took longest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryExperiment(Experiment[list[RegistryResult]]):
    """Searches of one client after the other."""

    name: ClassVar[str] = "registry"

    devices: int
    engines: Sequence[Engine]
    requests: int
    """Of each kind."""

    async def measure(self, progress: Progress) -> list[RegistryResult]:
        found: list[RegistryResult] = []
        for engine in self.engines:
            with tempfile.TemporaryDirectory(prefix="fleet-bench-") as name:
                async with database_of(engine, Path(name)) as address:
                    progress(f"{engine}: making {self.devices} devices")
                    await make_registry(address, self.devices)
                    progress(f"{engine}: searching")
                    found += await self._on(engine, address, Path(name))
        return found

    async def _on(self, engine: Engine, address: str, folder: Path) -> list[RegistryResult]:
        results = []
        async with serve_registry(address, folder, self.devices) as site:
            meter = CpuMeter({"control": [site.pid]})
            with closing(_Client(site.port)) as client:
                for kind, paths in _requests(self.requests).items():
                    measured = await meter.during(asyncio.to_thread(client.all, paths))
                    took, cpu_ms = measured.result, measured.cpu["control"] * 1000 / len(measured.result)
                    slowest, _ = max(took, key=lambda one: one[1])
                    ms = Percentiles.of([milliseconds for _, milliseconds in took])
                    results.append(RegistryResult(engine, self.devices, kind, len(took), ms, cpu_ms, slowest))
        return results


class _Client:
    """Sends requests over one connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection(LOOPBACK, port, timeout=120)

    def close(self) -> None:
        self._connection.close()

    def all(self, paths: Sequence[str]) -> list[tuple[str, float]]:
        """Send each request; return it with its milliseconds. Of a search, its next pages are read too."""
        took: list[tuple[str, float]] = []
        for path in paths:
            following: str | None = path
            for _ in range(_PAGES):
                begun = time.perf_counter()
                self._connection.request("GET", following or "", headers={"Authorization": f"Bearer {TOKEN}"})
                answer = self._connection.getresponse()
                body = answer.read()
                took.append((path, (time.perf_counter() - begun) * 1000))
                if answer.status != 200:
                    raise SystemExit(f"{path}: {answer.status} {body[:300]!r}")
                cursor = json.loads(body).get("next")
                if not cursor:
                    break
                following = f"{path}&cursor={quote(cursor)}"
        return took


def _requests(count: int, seed: int = 3) -> dict[str, list[str]]:
    draw = random.Random(seed)

    def search(query: str, more: str = "") -> str:
        return f"/v1/devices?limit=50&filter={quote(query)}{more}"

    def page() -> str:
        site, floor, batch = draw.choice(SITES), draw.choice(FLOORS), draw.choice(BATCHES)
        queries = (
            "",
            f"tag.site={site}",
            f"tag.site={site} AND tag.floor={floor}",
            f"tag.site={site} AND online AND firmware<2.5",
            f"tag.floor={floor} AND tag.batch={batch}",
            f"tag.floor={floor} AND NOT online",
            "board:bread-* AND online AND firmware>=2.4",
            f"tag.site={site} AND board=esp-box-1",
            "tool=self.tool_7 AND firmware=2.5",
            f"last_seen>-30d AND tag.site={site}",
        )
        return search(draw.choice(queries), draw.choice(("", "", "&sort=name", "&sort=-last_seen")))

    def substring() -> str:
        word = draw.choice(WORDS)
        begin = draw.randrange(max(1, len(word) - 3))
        texts = (
            word[begin : begin + 4],
            f"{word[-2:]} {draw.randrange(1000)}",
            str(draw.randrange(100_000)),
            f"sn{draw.randrange(100_000):06}",
            f"0000:{draw.randrange(4096):03x}",
        )
        return search(f'"{draw.choice(texts)}"')

    def facets() -> str:
        query = draw.choice(("", "", "online", f"tag.site={draw.choice(SITES)}", f"tag.floor={draw.choice(FLOORS)}"))
        by = draw.choice(("board", "firmware", "online", "state", "tool", "tag.site", "tag.floor"))
        return f"/v1/devices:counts?by={by}&filter={quote(query)}"

    makers = {"page": page, "substring": substring, "facets": facets}
    return {kind: [make() for _ in range(count)] for kind, make in makers.items()}


@asynccontextmanager
async def serve_registry(address: str, folder: Path, devices: int) -> AsyncIterator[ServedRegistry]:
    """Run control over a registry that was made, with a Redis that knows the same devices."""
    redis, port = choose(), choose()
    settings = {
        "FLEET_KEYS": f"bench:{secrets.token_hex(16)}",
        "FLEET_DATABASE_URL": address,
        "FLEET_REDIS_URL": f"redis://{LOOPBACK}:{redis}/0",
        "FLEET_CONTROL_PORT": str(port),
        "FLEET_DATA_DIR": str(folder / "data"),
        "FLEET_RATE_CONTROL": "100000/100000",
        "FLEET_METRICS_PORT": "none",
        "FLEET_SHARDS": str(SHARDS),
    }
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(run_redis(folder, redis, folder / "redis.log", keep=False))
        await asyncio.to_thread(fill_redis, settings["FLEET_REDIS_URL"], SHARDS, devices)
        pid = await stack.enter_async_context(role_process("control", settings, port, folder, _START_SECONDS))
        yield ServedRegistry(pid, port, settings["FLEET_REDIS_URL"])


@asynccontextmanager
async def database_of(engine: Engine, folder: Path) -> AsyncIterator[str]:
    if engine == "sqlite":
        yield f"sqlite:///{folder / 'control.db'}"
        return
    await asyncio.to_thread(folder.chmod, 0o755)  # PostgreSQL has an owner of its own
    with running(PostgresServer(folder / "pg")) as server:
        yield server.url()


async def make_registry(address: str, devices: int) -> None:
    """Fill an empty database with devices and the token of the bench."""
    database = Database(database_url(address))
    await upgrade(database)
    await fill(database_url(address), devices)
    await TokenRows(database).add(1, "bench", digest_of_token(TOKEN), SCOPES, 0)
    await database.close()


def show_registry(console: Console, found: Sequence[RegistryResult]) -> None:
    """Print the figures, with the load of the machine: beside others they are upper bounds."""
    table = Table("engine", "devices", "requests", "of", "p50 ms", "p99 ms", "most ms", "CPU ms", "wanted", "slowest")
    for one in found:
        wanted = " / ".join("" if mark is None else f"{mark:g}" for mark in MARKS_MS[one.kind])
        cells = (one.ms.p50, one.ms.p99, one.ms.most, one.cpu_ms)
        figures = [f"{value:.2f}" for value in cells]
        table.add_row(one.engine, f"{one.devices:,}", one.kind, str(one.requests), *figures, wanted, one.slowest)
    console.print(table)
    console.print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
