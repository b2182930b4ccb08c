"""`scripts/bench followers`: many clients follow events over the REST API, each a small part of them."""

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, Final

from sqlalchemy import insert

from fleet.adapters.redis.client.store import Store
from fleet.adapters.sql.device_rows import DeviceRows, NewDevice
from fleet.adapters.sql.open import open_database
from fleet.adapters.sql.schema import TENANT
from fleet.adapters.sql.token_rows import TokenRows
from fleet.core.permissions import SCOPES
from fleet.ground.errors import Unavailable
from fleet.roles.control.access import digest_of_token
from fleet.workbench.bench.experiment import Experiment, Progress
from fleet.workbench.bench.figures import Percentiles
from fleet.workbench.bench.silent_device import mac
from fleet.workbench.bench.usage import CpuMeter
from fleet.workbench.local_servers.mosquitto import until_accepting
from fleet.workbench.local_servers.ports import LOOPBACK, choose
from fleet.workbench.local_servers.process import run_program
from fleet.workbench.local_servers.redis import run_redis
from fleet.workbench.local_servers.server import Value, fleet_command, write_settings

SHARDS = 16
GROUPS = 100
_DEVICES = 1_000
_TENANTS: Final = 2
_TOKENS: Final = tuple(secrets.token_hex(16) for _ in range(2 * _TENANTS))
"""One may follow a quarter of what control serves, and its tenant half."""
_TICK = 0.02
_WARM_SECONDS = 3.0
_LAST_SECONDS = 3.0
_AT = re.compile(rb'"at":"([^"]+)"')


@dataclass(frozen=True, slots=True)
class FollowersResult:
    """What clients got, and what it cost control."""

    followers: int
    written: int
    """Events."""
    expected: int
    """Events times the clients whose filter takes them."""
    received: int
    ms: Percentiles
    """From the event to its client."""
    cores: float
    """Of control."""
    deliver_us: float
    """CPU of control for one event given to one client, with all of its work."""


class _Client:
    """One client; counts its events and their age."""

    def __init__(self) -> None:
        self.ms: list[float] = []
        self.received = 0

    async def run(self, port: int, group: int) -> None:
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        head = f"GET /v1/events?filter=tag.group=g{group} HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\n"
        writer.write(f"{head}Authorization: Bearer {_TOKENS[group % len(_TOKENS)]}\r\n\r\n".encode())
        first = await reader.readline()
        if b"200" not in first:
            raise Unavailable(f"a client was refused: {first.decode().strip()}")
        try:
            while data := await reader.read(1 << 16):
                now = datetime.now(UTC)
                for found in _AT.findall(data):
                    self.received += 1
                    self.ms.append((now - datetime.fromisoformat(found.decode())).total_seconds() * 1000)
        finally:
            writer.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowersExperiment(Experiment[FollowersResult]):
    """Clients that each follow one of a hundred groups of devices."""

    name: ClassVar[str] = "followers"

    followers: int
    rate: float
    """Events a second."""

    async def measure(self, progress: Progress) -> FollowersResult:
        async with AsyncExitStack() as stack:
            progress("starting")
            store, port, pid = await stack.enter_async_context(_site())
            clients = [_Client() for _ in range(self.followers)]
            group = await stack.enter_async_context(asyncio.TaskGroup())
            tasks = []
            for number, client in enumerate(clients):
                tasks.append(group.create_task(client.run(port, number % GROUPS), name=f"client {number}"))
                await asyncio.sleep(0.002)
            progress("warming up")
            await _write(store, self.rate, _WARM_SECONDS)
            await asyncio.sleep(1.0)
            for client in clients:
                client.ms, client.received = [], 0
            progress(f"{self.followers} clients, {self.rate:g} events a second")
            meter = CpuMeter({"control": [pid]})
            spent = await meter.during(self._load(store))
            await asyncio.sleep(_LAST_SECONDS)
            for task in tasks:
                task.cancel()
        received = sum(client.received for client in clients)
        each = [self.followers // GROUPS + (number < self.followers % GROUPS) for number in range(GROUPS)]
        expected = sum(each[number % _DEVICES % GROUPS] for number in range(spent.result["written"]))
        return FollowersResult(
            followers=self.followers,
            written=spent.result["written"],
            expected=expected,
            received=received,
            ms=Percentiles.of([ms for client in clients for ms in client.ms]),
            cores=spent.cpu["control"] / spent.seconds,
            deliver_us=spent.cpu["control"] / max(received, 1) * 1e6,
        )

    async def _load(self, store: Store) -> dict[str, int]:
        return {"written": await _write(store, self.rate, self.seconds)}


@asynccontextmanager
async def _site() -> AsyncIterator[tuple[Store, int, int]]:
    """Run Redis and control beside the block; give the store, the port of control and its process."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="fleet-bench-")))
        redis, port = choose(), choose()
        await stack.enter_async_context(run_redis(folder, redis, folder / "redis.log", keep=True))
        store = await Store.open(f"redis://{LOOPBACK}:{redis}/0", SHARDS)
        stack.push_async_callback(store.close)
        async with open_database(f"sqlite:///{folder / 'control.db'}") as database:
            async with database.writing() as connection:
                others = [{"id": one, "slug": f"t{one}", "name": "", "created": 0} for one in range(2, _TENANTS + 1)]
                await connection.execute(insert(TENANT), others)
            for number, token in enumerate(_TOKENS):
                tenant = number % _TENANTS + 1
                await TokenRows(database).add(tenant, f"bench {number}", digest_of_token(token), SCOPES, 1)
            for tenant in range(_TENANTS):
                numbers = range(tenant, _DEVICES, _TENANTS)
                devices = [NewDevice(mac(one), tags={"group": f"g{one % GROUPS}"}) for one in numbers]
                await DeviceRows(database, tenant + 1).add(devices)
        settings: dict[str, Value] = {
            "redis_url": f"redis://{LOOPBACK}:{redis}/0",
            "control_port": port,
            "data_dir": str(folder),
        }
        settings["keys"] = f"bench:{secrets.token_hex(16)}"
        config = folder / "fleet.toml"
        write_settings({**settings, "rate_control": "100000/100000", "log_format": "json"}, config)
        program = run_program("control", fleet_command(config, "control"), folder / "control.log")
        control = await stack.enter_async_context(program)
        await until_accepting("control", port)
        async with asyncio.timeout(30):
            while not await store.client.exists(store.keys.events(0)):  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.1)
        yield store, port, control.pid


async def _write(store: Store, rate: float, seconds: float) -> int:
    """Write events of turns at a rate; return how many."""
    clock = asyncio.get_running_loop().time
    begun, written = clock(), 0
    data = json.dumps({"turn": "0" * 32, "session": "0" * 32, "stages": {"heard": 700, "first_token": 300}})
    while (now := clock()) < begun + seconds:
        pipe = store.client.pipeline(transaction=False)
        due = int((now - begun) * rate) - written
        for number in range(written, written + due):
            device = mac(number % _DEVICES)
            key = store.keys.events(store.keys.shard(device))
            pipe.execute_command("XADD", key, "*", "k", "turn.answered", "m", device, "d", data)
        if due:
            await store.ask(pipe.execute())
        written += due
        await asyncio.sleep(_TICK)
    return written
