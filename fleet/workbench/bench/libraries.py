"""What our own code costs beside the library that it stands in for: Redis, metrics, HTTP and WebSockets (ADR 28)."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Final

import prometheus_client
import uvicorn
from redis.asyncio import ConnectionPool, Redis
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

from fleet.adapters.net.http.connection import BoundedConnection, Bounds
from fleet.adapters.redis.client.client import execute
from fleet.adapters.redis.client.pipeline import PipelinedConnection
from fleet.ground.metrics import calls, turns
from fleet.ground.metrics.histogram import SECONDS
from fleet.ground.tasks import running
from fleet.roles.gateway.port.connection_limits import ClientLimits, ConnectionLimits
from fleet.roles.gateway.port.limited_connection import LimitedConnection
from fleet.workbench.bench.experiment import Experiment, Progress
from fleet.workbench.bench.figures import Spread
from fleet.workbench.local_servers.ports import LOOPBACK, choose
from fleet.workbench.local_servers.redis import run_redis

Work = Callable[[int], Awaitable[None]]
"""Does so many operations."""

_LIMIT_SECONDS: Final = 2.0
_ANSWER: Final = b"x" * 200
_TOGETHER: Final = 16
_WARM_UP: Final = 640
"""Operations; a multiple of how many run at a time."""
_HSET: Final = ("HSET", "bench", "field", _ANSWER)


@dataclass(frozen=True, slots=True)
class LibraryResult:
    """CPU of this process an operation, in microseconds; both ran in turns, and `ratio` is library to own of a turn."""

    operation: str
    own_us: Spread
    library_us: Spread
    ratio: Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class LibrariesExperiment(Experiment[list[LibraryResult]]):
    """Our own code and the library's, in turns in one process; a window of the library lasts for about `seconds`."""

    name: ClassVar[str] = "libraries"

    async def measure(self, progress: Progress) -> list[LibraryResult]:
        progress("metrics")
        found = [
            await self._compare("metrics: count", _counters()),
            await self._compare("metrics: observe", _histograms()),
            await self._compare("metrics: observe, labels bound before", _bound_histograms()),
        ]
        progress("Redis")
        found += await self._redis()
        progress("HTTP")
        async with _http(BoundedConnection.within(Bounds())) as own, _http(HttpToolsProtocol) as plain:
            found.append(await self._compare("HTTP: a request", (_requests(own), _requests(plain))))
        progress("WebSockets")
        limited = LimitedConnection.of(ConnectionLimits(ClientLimits()))
        async with _websocket(limited) as own, _websocket(ServerConnection) as plain:
            pair = _messages(own), _messages(plain)
            found.append(await self._compare("WebSocket: a message and its answer", pair))
        return found

    async def _redis(self) -> list[LibraryResult]:
        with TemporaryDirectory() as folder:
            port = choose(16_379)
            async with run_redis(Path(folder), port, Path(folder) / "log", keep=False), _clients(port) as clients:
                found = [
                    await self._compare(f"Redis: HSET, {at_once} at a time", _commands(*clients, at_once))
                    for at_once in (1, 16, 64)
                ]
                return [*found, await self._compare(f"Redis: HSET, {_TOGETHER} in one pipeline", _batches(*clients))]

    async def _compare(self, operation: str, pair: tuple[Work, Work]) -> LibraryResult:
        own, library = pair
        await own(_WARM_UP)
        await library(_WARM_UP)
        count = int(_WARM_UP * max(1.0, self.seconds / await _cpu(library, _WARM_UP)))
        times = [(await _cpu(own, count), await _cpu(library, count)) for _ in range(self.repeats)]
        each = 1e6 / count
        return LibraryResult(
            operation,
            Spread.of([mine * each for mine, _ in times]),
            Spread.of([theirs * each for _, theirs in times]),
            Spread.of([theirs / mine for mine, theirs in times]),
        )


async def _cpu(work: Work, count: int) -> float:
    """Return the CPU time of this process, in seconds."""
    begun = time.process_time()
    await work(count)
    return time.process_time() - begun


def _counters() -> tuple[Work, Work]:
    theirs = prometheus_client.Counter("bench_theirs", "Events.", ["outcome"], registry=None)

    async def own(count: int) -> None:
        for _ in range(count):
            turns.outcomes.add("answered")

    async def library(count: int) -> None:
        for _ in range(count):
            theirs.labels("answered").inc()

    return own, library


def _histogram() -> prometheus_client.Histogram:
    return prometheus_client.Histogram("bench_theirs_s", "Times.", ["place"], buckets=SECONDS, registry=None)


def _histograms() -> tuple[Work, Work]:
    place, theirs = calls.PLACES[0], _histogram()

    async def own(count: int) -> None:
        for _ in range(count):
            calls.duration.observe(0.7, place)

    async def library(count: int) -> None:
        for _ in range(count):
            theirs.labels(place).observe(0.7)

    return own, library


def _bound_histograms() -> tuple[Work, Work]:
    ours, theirs = calls.duration.tally(calls.PLACES[0]), _histogram().labels(calls.PLACES[0])

    async def own(count: int) -> None:
        for _ in range(count):
            ours.observe(0.7)

    async def library(count: int) -> None:
        for _ in range(count):
            theirs.observe(0.7)

    return own, library


@asynccontextmanager
async def _clients(port: int) -> AsyncIterator[tuple[PipelinedConnection, Redis]]:
    client, pool = Redis(host=LOOPBACK, port=port), ConnectionPool(host=LOOPBACK, port=port)
    shared = PipelinedConnection(pool, _LIMIT_SECONDS)
    try:
        yield shared, client
    finally:
        await shared.drop()
        await client.aclose()
        await pool.aclose()


def _commands(shared: PipelinedConnection, client: Redis, at_once: int) -> tuple[Work, Work]:
    """Return one HSET after the other from `at_once` tasks: over one shared connection, and through redis-py's pool."""

    async def each(count: int, command: Callable[[], Awaitable[Any]]) -> None:
        async def some() -> None:
            for _ in range(count // at_once):
                await command()

        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(some(), name="redis")

    return (
        lambda count: each(count, lambda: shared.ask([_HSET])),
        lambda count: each(count, lambda: execute(client, *_HSET)),
    )


def _batches(shared: PipelinedConnection, client: Redis) -> tuple[Work, Work]:
    """Return some commands sent together, time after time; redis-py has `pipeline` for that."""

    async def own(count: int) -> None:
        for _ in range(count // _TOGETHER):
            await shared.ask([_HSET] * _TOGETHER)

    async def library(count: int) -> None:
        for _ in range(count // _TOGETHER):
            pipeline = client.pipeline(transaction=False)
            for _ in range(_TOGETHER):
                pipeline.execute_command(*_HSET)
            await pipeline.execute()

    return own, library


@asynccontextmanager
async def _http(kind: type[HttpToolsProtocol]) -> AsyncIterator[int]:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"200")]})
        await send({"type": "http.response.body", "body": _ANSWER})

    port = choose(18_000)
    config = uvicorn.Config(
        app, LOOPBACK, port, http=kind, ws="none", log_config=None, access_log=False, lifespan="off"
    )
    server = uvicorn.Server(config)
    async with running("http", server.serve):
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        yield port
        server.should_exit = True


def _requests(port: int) -> Work:
    async def work(count: int) -> None:
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        for _ in range(count):
            writer.write(b"GET / HTTP/1.1\r\nHost: bench\r\n\r\n")
            await reader.readuntil(_ANSWER)
        writer.close()

    return work


@asynccontextmanager
async def _websocket(kind: type[ServerConnection]) -> AsyncIterator[int]:
    async def echo(connection: ServerConnection) -> None:
        async for message in connection:
            await connection.send(message)

    async with serve(echo, LOOPBACK, 0, create_connection=kind, compression=None) as server:
        yield next(iter(server.sockets)).getsockname()[1]


def _messages(port: int) -> Work:
    async def work(count: int) -> None:
        async with connect(f"ws://{LOOPBACK}:{port}", compression=None) as client:
            for _ in range(count):
                await client.send("x" * 200)
                await client.recv()

    return work
