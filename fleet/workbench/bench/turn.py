"""`scripts/bench turn`: what fleet adds between a chat model's first token and a gateway client's first sentence."""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from fleet.ground.errors import Unavailable
from fleet.workbench.bench.figures import Percentiles, Spread
from fleet.workbench.bench.turn_model import TurnModel, turn_model
from fleet.workbench.bench.turn_talk import Delays, Talker, direct_talkers, gateway_talkers, talk
from fleet.workbench.bench.usage import Usage
from fleet.workbench.local_servers.ports import LOOPBACK, accepts, choose
from fleet.workbench.local_servers.process import find_program, run_program
from fleet.workbench.local_servers.redis import run_redis

PARTS = ("gateway", "redis", "load")
"""The gateway's process, the store's, and what plays the model and its clients."""
_READY_SECONDS = 30.0
_WARM_SECONDS = 1.0
_IDLE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured: `seconds` a window, so many windows of each kind."""

    at_once: Sequence[int]
    """Turns that run at the same time."""
    rate: float
    """Turns a second, about: the more run at once, the longer each takes the model."""
    seconds: float
    """At least; a window is never shorter than two turns."""
    repeats: int


@dataclass(frozen=True, slots=True)
class Case:
    """All that was measured with so many turns at once."""

    at_once: int
    turns: int
    rate: float
    """Turns a second."""
    direct_rate: float
    """Turns a second of clients that ask the model itself."""
    first_ms: Percentiles
    """From the model's first token to the client's first sentence."""
    last_ms: Percentiles
    """From the model's last token to the end of the answer."""
    direct_ms: Percentiles
    """As `first_ms`, but for clients that ask the model itself."""
    us: dict[str, Spread]
    """CPU time of a turn by part, in microseconds."""
    lost: int


@dataclass(frozen=True, slots=True)
class Scene:
    """What is measured on: the model, the gateway's port, and the processes."""

    model: TurnModel
    port: int
    pids: Mapping[str, int]
    numbers: "count[int]"


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
    async with _scene() as scene:
        return [await _case(plan, number, scene, doing) for number in plan.at_once]


async def _case(plan: Plan, at_once: int, scene: Scene, doing: Callable[[str], None]) -> Case:
    doing(f"{at_once} at once: without fleet")
    scene.model.seconds = at_once / plan.rate
    seconds = max(plan.seconds, 2 * scene.model.seconds)
    async with direct_talkers(scene.model.port, at_once) as talkers:
        begun = time.perf_counter()
        direct = await talk(talkers, scene.model, seconds, scene.numbers)
        direct_seconds = time.perf_counter() - begun
    doing(f"{at_once} at once: turns")
    async with gateway_talkers(scene.port, at_once) as talkers:
        # Every connection is used once.
        await talk(talkers, scene.model, max(_WARM_SECONDS, scene.model.seconds), scene.numbers)
        idle = await _idle(scene)
        windows = [await _window(seconds, talkers, scene, idle) for _ in range(plan.repeats)]
    turns = sum(len(window.delays.first) for window in windows)
    return Case(
        at_once=at_once,
        turns=turns,
        rate=turns / sum(window.seconds for window in windows),
        direct_rate=len(direct.first) / direct_seconds,
        first_ms=Percentiles.of([ms for window in windows for ms in window.delays.first]),
        last_ms=Percentiles.of([ms for window in windows for ms in window.delays.last]),
        direct_ms=Percentiles.of(direct.first),
        us={part: Spread.of([window.us[part] for window in windows]) for part in PARTS},
        lost=direct.lost + sum(window.delays.lost for window in windows),
    )


@dataclass(frozen=True, slots=True)
class _Window:
    delays: Delays
    seconds: float
    us: dict[str, float]


async def _window(seconds: float, talkers: list[Talker], scene: Scene, idle: Mapping[str, float]) -> _Window:
    before, begun = _cpu(scene), time.perf_counter()
    delays = await talk(talkers, scene.model, seconds, scene.numbers)
    took, after = time.perf_counter() - begun, _cpu(scene)
    turns = max(len(delays.first), 1)
    us = {part: max(after[part] - before[part] - idle[part] * took, 0.0) / turns * 1e6 for part in PARTS}
    return _Window(delays, took, us)


async def _idle(scene: Scene) -> dict[str, float]:
    """Return how much of a core each part needs with all connections but no turns."""
    before, begun = _cpu(scene), time.perf_counter()
    await asyncio.sleep(_IDLE_SECONDS)
    took, after = time.perf_counter() - begun, _cpu(scene)
    return {part: (after[part] - before[part]) / took for part in PARTS}


def _cpu(scene: Scene) -> dict[str, float]:
    return {part: Usage.of([pid]).cpu for part, pid in scene.pids.items()}


@asynccontextmanager
async def _scene() -> AsyncIterator[Scene]:
    """Run a model here, and a Redis and a gateway as processes of their own, on free ports of the loopback address."""
    redis, port = choose(), choose()
    with tempfile.TemporaryDirectory(prefix="fleet-bench-") as name:
        folder = Path(name)
        store = run_redis(folder, redis, folder / "redis.log", keep=True)
        async with turn_model() as model, store as redis_program:
            command = _gateway(folder, model, port, redis)
            async with run_program("the gateway", command, folder / "gateway.log") as gateway:
                await _until_open(port)
                pids = {"gateway": gateway.pid, "redis": redis_program.pid, "load": os.getpid()}
                yield Scene(model, port, pids, count())


def _gateway(folder: Path, model: TurnModel, port: int, redis: int) -> list[str]:
    """Return the command of `fleet gateway` as an operator runs it; what is set for others here is not passed on."""
    settings = {
        "HOME": str(folder),
        "PATH": os.defpath,
        "CLOUD_HOST": LOOPBACK,
        "CLOUD_PORT": str(port),
        "LLM_BASE_URL": model.url,
        "LLM_MODEL": "bench",
        "FLEET_REDIS_URL": f"redis://{LOOPBACK}:{redis}/0",
    }
    pairs = [f"{name}={value}" for name, value in settings.items()]
    return [find_program("env"), "-i", *pairs, sys.executable, "-m", "fleet", "gateway"]


async def _until_open(port: int) -> None:
    try:
        async with asyncio.timeout(_READY_SECONDS):
            while not accepts(port):  # noqa: ASYNC110 - servers tell nobody when they are ready
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise Unavailable(f"nothing listens on port {port} after {_READY_SECONDS:g} s") from None
