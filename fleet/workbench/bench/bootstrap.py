"""`scripts/bench bootstrap`: what the first request of a device costs the api, and how long devices wait for it."""

import asyncio
import os
import secrets
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from fleet.adapters.redis.access.admissions import Admissions
from fleet.adapters.redis.client.store import Store
from fleet.workbench.bench.experiment import Experiment, Progress
from fleet.workbench.bench.figures import Percentiles, Spread
from fleet.workbench.bench.role_process import role_process
from fleet.workbench.bench.silent_device import mac
from fleet.workbench.bench.usage import CpuMeter, Measured
from fleet.workbench.local_servers.ports import LOOPBACK, choose
from fleet.workbench.local_servers.redis import run_redis
from fleet.workbench.sim.bootstrap.raw_request import PATIENCE, Answer, ask, request
from fleet.workbench.sim.profiles.identity import Identity
from fleet.workbench.sim.profiles.profile import find_profile

PARTS = ("api", "redis", "load")
"""The api's process, the store's, and what plays the devices."""
SHARDS = 16
_PATH = "/xiaozhi/ota/"
_AT_ONCE = 800
"""Connections; a process may seldom open more than a thousand files."""
_WARM_SECONDS = 0.5
_IDLE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class BootstrapResult:
    """All that was measured at one rate."""

    asked: float
    """Requests a second that were wanted."""
    rate: float
    """Requests a second that were answered, from the first one to the last answer."""
    answers: int
    refused: dict[str, int]
    """Whatever was no answer with status 200, by status or reason."""
    ms: Percentiles
    """From the moment at which a request was due to the end of its answer."""
    us: dict[str, Spread]
    """CPU time of a request by part, in microseconds."""
    cores: dict[str, float]
    """Part of a core that each part had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapExperiment(Experiment[list[BootstrapResult]]):
    """Requests at several rates; the api and its Redis run as processes of their own."""

    name: ClassVar[str] = "bootstrap"

    rates: Sequence[float]
    """Requests a second."""
    devices: int
    """Different ones, that ask in turn; all are known after the first round."""
    closed: bool
    """Whether only bound devices are served, and all of them are bound; otherwise everybody is served."""

    async def measure(self, progress: Progress) -> list[BootstrapResult]:
        progress("starting")
        async with self._running() as site:
            progress("devices become known")
            await site.window(self.devices / 200, 200)
            return [await self._at(rate, site, progress) for rate in self.rates]

    async def _at(self, rate: float, site: "_Site", progress: Progress) -> BootstrapResult:
        progress(f"{rate:g} a second: at rest")
        await site.meter.rest(_IDLE_SECONDS)
        progress(f"{rate:g} a second")
        await site.window(_WARM_SECONDS, rate)
        windows = [await site.window(self.seconds, rate) for _ in range(self.repeats)]
        answers = [answer for window in windows for answer in window.result]
        seconds = sum(window.seconds for window in windows)
        return BootstrapResult(
            asked=rate,
            rate=len(answers) / seconds,
            answers=len(answers),
            refused=dict(Counter(answer.status for answer in answers if answer.status != "200")),
            ms=Percentiles.of([answer.seconds * 1000 for answer in answers]),
            us={part: Spread.of([one.cpu[part] / len(one.result) * 1e6 for one in windows]) for part in PARTS},
            cores={part: sum(one.cpu[part] for one in windows) / seconds for part in PARTS},
        )

    @asynccontextmanager
    async def _running(self) -> AsyncIterator["_Site"]:
        """Run a Redis and an api on free ports of the loopback address."""
        redis, port = choose(), choose()
        macs = [mac(number) for number in range(self.devices)]
        with tempfile.TemporaryDirectory(prefix="fleet-bench-") as name:
            folder = Path(name)
            async with run_redis(folder, redis, folder / "redis.log", keep=True) as store:
                if self.closed:
                    await _bind(f"redis://{LOOPBACK}:{redis}/0", macs)
                async with role_process("api", self._settings(port, redis), port, folder) as api:
                    meter = CpuMeter({"api": [api], "redis": [store.pid], "load": [os.getpid()]})
                    profile, host = find_profile("P1"), f"{LOOPBACK}:{port}"
                    yield _Site(port, meter, [request(one, profile, host, _PATH) for one in macs])

    def _settings(self, port: int, redis: int) -> dict[str, str]:
        return {
            "FLEET_KEYS": f"bench:{secrets.token_hex(16)}",
            "FLEET_ACTIVATION": "closed" if self.closed else "open",
            "FLEET_HTTP_HOST": LOOPBACK,
            "FLEET_HTTP_PORT": str(port),
            "FLEET_SHARDS": str(SHARDS),
            "FLEET_REDIS_URL": f"redis://{LOOPBACK}:{redis}/0",
            "FLEET_LOG_FORMAT": "json",
            "FLEET_METRICS_PORT": "none",
            # A few addresses here stand for the many of a site.
            "FLEET_RATE_ADDRESS": "100000/100000",
            "FLEET_RATE_DEVICE": "100000/100000",
        }


@dataclass(frozen=True, slots=True)
class _Site:
    port: int
    meter: CpuMeter
    requests: Sequence[bytes]

    async def window(self, seconds: float, rate: float) -> Measured[list[Answer]]:
        """Let devices ask at a steady rate; the window ends with the last answer."""
        return await self.meter.during(self._ask(seconds, rate))

    async def _ask(self, seconds: float, rate: float) -> list[Answer]:
        loop, slots = asyncio.get_running_loop(), asyncio.Semaphore(_AT_ONCE)
        begun = loop.time()

        async def one(number: int) -> Answer:
            due = begun + number / rate
            await asyncio.sleep(due - loop.time())
            async with slots:
                return await ask(LOOPBACK, self.port, self.requests[number % len(self.requests)], due)

        async with asyncio.timeout(seconds + 2 * PATIENCE), asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(one(number), name="bootstrap") for number in range(max(1, round(seconds * rate)))
            ]
        return [task.result() for task in tasks]


async def _bind(url: str, macs: Sequence[str]) -> None:
    store = await Store.open(url, SHARDS)
    try:
        admissions = Admissions(store)
        for one in macs:
            await admissions.bind(one, Identity.of(one).client)
    finally:
        await store.close()
