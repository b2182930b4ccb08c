"""`scripts/bench bootstrap`: what a device's first request costs the api, and how long devices of a herd wait."""

import asyncio
import os
import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from fleet.adapters.redis.access.admissions import Admissions
from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import Unavailable
from fleet.workbench.bench.figures import Percentiles, Spread
from fleet.workbench.bench.puppet import mac
from fleet.workbench.bench.reconnect_storm import PATIENCE, Answer, ask, request
from fleet.workbench.bench.usage import Usage
from fleet.workbench.local_servers.ports import LOOPBACK, accepts, choose
from fleet.workbench.local_servers.process import find_program, run_program
from fleet.workbench.local_servers.redis import run_redis
from fleet.workbench.sim.profiles.identity import Identity

PARTS = ("api", "redis", "load")
"""The api's process, the store's, and what plays the devices."""
SHARDS = 16
_AT_ONCE = 800
"""Connections; a process may seldom open more than a thousand files."""
_READY_SECONDS = 60.0
_WARM_SECONDS = 0.5
_IDLE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured: `seconds` a window, so many windows at each rate."""

    rates: Sequence[float]
    """Requests a second."""
    devices: int
    """Different ones, that ask in turn; all are known after the first round."""
    closed: bool
    """Whether only bound devices are served; all of them are. Otherwise everybody is."""
    seconds: float
    repeats: int


@dataclass(frozen=True, slots=True)
class Case:
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


@dataclass(frozen=True, slots=True)
class _Scene:
    port: int
    pids: Mapping[str, int]
    requests: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class _Window:
    seconds: float
    answers: list[Answer]
    cpu: dict[str, float]


async def measure(plan: Plan, doing: Callable[[str], None]) -> list[Case]:
    """Measure all cases.

    Args:
        plan: What.
        doing: Told what is being measured.

    Raises:
        ConfigError: A program is missing.
        Unavailable: A process of the benchmark ended.
    """
    doing("starting")
    async with _scene(plan) as scene:
        doing("devices become known")
        await _window(plan.devices / 200, 200, scene, dict.fromkeys(PARTS, 0.0))
        return [await _case(plan, rate, scene, doing) for rate in plan.rates]


async def _case(plan: Plan, rate: float, scene: _Scene, doing: Callable[[str], None]) -> Case:
    doing(f"{rate:g} a second: at rest")
    idle = await _idle(scene)
    doing(f"{rate:g} a second")
    await _window(_WARM_SECONDS, rate, scene, idle)
    windows = [await _window(plan.seconds, rate, scene, idle) for _ in range(plan.repeats)]
    answers = [answer for window in windows for answer in window.answers]
    seconds = sum(window.seconds for window in windows)
    return Case(
        asked=rate,
        rate=len(answers) / seconds,
        answers=len(answers),
        refused=dict(Counter(answer.status for answer in answers if answer.status != "200")),
        ms=Percentiles.of([answer.seconds * 1000 for answer in answers]),
        us={part: Spread.of([one.cpu[part] / len(one.answers) * 1e6 for one in windows]) for part in PARTS},
        cores={part: sum(one.cpu[part] for one in windows) / seconds for part in PARTS},
    )


async def _window(seconds: float, rate: float, scene: _Scene, idle: Mapping[str, float]) -> _Window:
    """Let devices ask at a steady rate; the window ends with the last answer."""
    loop, slots = asyncio.get_running_loop(), asyncio.Semaphore(_AT_ONCE)
    before, begun = _cpu(scene), loop.time()

    async def visit(number: int) -> Answer:
        due = begun + number / rate
        await asyncio.sleep(due - loop.time())
        async with slots:
            return await ask(scene.port, scene.requests[number % len(scene.requests)], due)

    async with asyncio.timeout(seconds + 2 * PATIENCE), asyncio.TaskGroup() as group:
        visits = [group.create_task(visit(number), name="visit") for number in range(max(1, round(seconds * rate)))]
    took, after = loop.time() - begun, _cpu(scene)
    cpu = {part: max(after[part] - before[part] - idle[part] * took, 0.0) for part in PARTS}
    return _Window(took, [one.result() for one in visits], cpu)


async def _idle(scene: _Scene) -> dict[str, float]:
    """Return how much of a core each part needs when nobody asks."""
    before = _cpu(scene)
    await asyncio.sleep(_IDLE_SECONDS)
    after = _cpu(scene)
    return {part: (after[part] - before[part]) / _IDLE_SECONDS for part in PARTS}


def _cpu(scene: _Scene) -> dict[str, float]:
    return {part: Usage.of([pid]).cpu for part, pid in scene.pids.items()}


@asynccontextmanager
async def _scene(plan: Plan) -> AsyncIterator[_Scene]:
    """Run a Redis and an api as processes of their own, on free ports of the loopback address."""
    redis, port = choose(), choose()
    with tempfile.TemporaryDirectory(prefix="fleet-bench-") as name:
        folder = Path(name)
        command, log = _api(folder, plan, port, redis), folder / "api.log"
        async with run_redis(folder, redis, folder / "redis.log", keep=True) as store:
            macs = [mac(number) for number in range(plan.devices)]
            if plan.closed:
                await _bind(f"redis://{LOOPBACK}:{redis}/0", macs)
            async with run_program("the api", command, log) as api:
                await _until_open(port)
                pids = {"api": api.pid, "redis": store.pid, "load": os.getpid()}
                yield _Scene(port, pids, [request(one, port) for one in macs])


async def _bind(url: str, macs: Sequence[str]) -> None:
    store = await Store.open(url, SHARDS)
    try:
        admissions = Admissions(store)
        for one in macs:
            await admissions.bind(one, Identity.of(one).client)
    finally:
        await store.close()


def _api(folder: Path, plan: Plan, port: int, redis: int) -> list[str]:
    """Return the command of `fleet api` as an operator runs it; what is set for others here is not passed on."""
    settings = {
        "HOME": str(folder),
        "PATH": os.defpath,
        "FLEET_KEYS": f"bench:{secrets.token_hex(16)}",
        "FLEET_ACTIVATION": "closed" if plan.closed else "open",
        "FLEET_HTTP_HOST": LOOPBACK,
        "FLEET_HTTP_PORT": str(port),
        "FLEET_SHARDS": str(SHARDS),
        "FLEET_REDIS_URL": f"redis://{LOOPBACK}:{redis}/0",
        "FLEET_LOG_FORMAT": "json",
        "FLEET_METRICS_PORT": "none",
        # A few connections here stand for a site's many.
        "FLEET_RATE_ADDRESS": "100000/100000",
        "FLEET_RATE_DEVICE": "100000/100000",
    }
    pairs = [f"{name}={value}" for name, value in settings.items()]
    return [find_program("env"), "-i", *pairs, sys.executable, "-m", "fleet", "api"]


async def _until_open(port: int) -> None:
    try:
        async with asyncio.timeout(_READY_SECONDS):
            while not accepts(port):  # noqa: ASYNC110 - servers tell nobody when they are ready
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise Unavailable(f"the api was not ready within {_READY_SECONDS:g} s") from None
