"""`scripts/bench turn`: what fleet adds between a chat model's first token and a gateway client's first sentence."""

import os
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import ClassVar

from fleet.workbench.bench.chat_http import serving
from fleet.workbench.bench.experiment import Experiment, Progress
from fleet.workbench.bench.figures import Percentiles, Spread
from fleet.workbench.bench.role_process import role_process
from fleet.workbench.bench.turn_model import TurnModel
from fleet.workbench.bench.turn_talk import Delays, direct_talkers, gateway_talkers, talk
from fleet.workbench.bench.usage import CpuMeter, Measured
from fleet.workbench.local_servers.ports import LOOPBACK, choose
from fleet.workbench.local_servers.redis import run_redis

PARTS = ("gateway", "redis", "load")
"""The gateway's process, the store's, and what plays the model and its clients."""
_WARM_SECONDS = 1.0
_IDLE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class TurnResult:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnExperiment(Experiment[list[TurnResult]]):
    """Turns of gateway clients, with several numbers of turns at once."""

    name: ClassVar[str] = "turn"

    at_once: Sequence[int]
    """Turns that run at the same time."""
    rate: float
    """Turns a second, about: the more run at once, the longer each takes the model."""

    async def measure(self, progress: Progress) -> list[TurnResult]:
        progress("starting")
        async with _running() as site:
            return [await self._with(number, site, progress) for number in self.at_once]

    async def _with(self, at_once: int, site: "_Site", progress: Progress) -> TurnResult:
        progress(f"{at_once} at once: without fleet")
        site.model.seconds = at_once / self.rate
        # A window is never shorter than two turns.
        seconds = max(self.seconds, 2 * site.model.seconds)
        async with direct_talkers(site.model.port, at_once) as talkers:
            direct = await site.meter.during(talk(talkers, site.model, seconds, site.numbers))
        progress(f"{at_once} at once: turns")
        async with gateway_talkers(site.port, at_once) as talkers:
            # Every connection is used once.
            await talk(talkers, site.model, max(_WARM_SECONDS, site.model.seconds), site.numbers)
            await site.meter.rest(_IDLE_SECONDS)
            windows = [
                await site.meter.during(talk(talkers, site.model, seconds, site.numbers)) for _ in range(self.repeats)
            ]
        return _result(at_once, direct, windows)


def _result(at_once: int, direct: Measured[Delays], windows: Sequence[Measured[Delays]]) -> TurnResult:
    turns = sum(len(window.result.first) for window in windows)
    return TurnResult(
        at_once=at_once,
        turns=turns,
        rate=turns / sum(window.seconds for window in windows),
        direct_rate=len(direct.result.first) / direct.seconds,
        first_ms=Percentiles.of([ms for window in windows for ms in window.result.first]),
        last_ms=Percentiles.of([ms for window in windows for ms in window.result.last]),
        direct_ms=Percentiles.of(direct.result.first),
        us={
            part: Spread.of([window.cpu[part] / max(len(window.result.first), 1) * 1e6 for window in windows])
            for part in PARTS
        },
        lost=direct.result.lost + sum(window.result.lost for window in windows),
    )


@dataclass(frozen=True, slots=True)
class _Site:
    """What is measured on: the model, the port of the gateway, and the processes."""

    model: TurnModel
    port: int
    meter: CpuMeter
    numbers: "count[int]"


@asynccontextmanager
async def _running() -> AsyncIterator[_Site]:
    """Run a model here, and a Redis and a gateway as processes of their own, on free ports of the loopback address."""
    redis, port = choose(), choose()
    with tempfile.TemporaryDirectory(prefix="fleet-bench-") as name:
        folder = Path(name)
        async with serving(TurnModel()) as model, run_redis(folder, redis, folder / "redis.log", keep=True) as store:
            settings = {
                "CLOUD_HOST": LOOPBACK,
                "CLOUD_PORT": str(port),
                "LLM_BASE_URL": model.url,
                "LLM_MODEL": "bench",
                "FLEET_REDIS_URL": f"redis://{LOOPBACK}:{redis}/0",
            }
            async with role_process("gateway", settings, port, folder) as gateway:
                meter = CpuMeter({"gateway": [gateway], "redis": [store.pid], "load": [os.getpid()]})
                yield _Site(model, port, meter, count())
