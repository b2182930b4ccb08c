"""`scripts/bench job-rows`: a job over very many rows, whose shards' owners answer at once without devices."""

import asyncio
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, cast

import redis.asyncio
from rich.console import Console
from rich.table import Table

from fleet.client import jobs
from fleet.client.client import AsyncFleetClient
from fleet.ground.errors import Unavailable
from fleet.wire.control.jobs import Job, JobRequest
from fleet.workbench.bench.experiment import Experiment, Progress
from fleet.workbench.bench.jobs import AT_REST
from fleet.workbench.bench.usage import CpuMeter
from fleet.workbench.local_servers.module_command import module_command
from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.local_servers.process import run_program
from tests.benchmarks.registry import TOKEN, database_of, make_registry, serve_registry

TOOL: Final = "self.tool_1"
MARKS: Final = "10 s, 20 MiB, 5,000 a second"
_WINDOW: Final = 10_000
_LONGEST_SECONDS: Final = 600.0
_LOOK_SECONDS: Final = 1.0
_REST_SECONDS: Final = 60.0
"""Longest wait until control has compared its rows with Redis: with a million rows it takes a quarter of an hour."""


@dataclass(frozen=True, slots=True)
class JobRowsResult:
    """One job."""

    devices: int
    begun_seconds: float
    """From the request until the first stage."""
    rate: float
    """Outcomes that control stored in a second."""
    ended: int
    failed: int
    control_idle: float
    """Share of a core that control used before; it is subtracted."""
    cpu_us: dict[str, float]
    """CPU of an execution by part."""
    redis_bytes: tuple[int, int]
    """What Redis kept before, and at most meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRowsExperiment(Experiment[JobRowsResult]):
    """A job that is stopped after `seconds`, or when nobody is left who is connected."""

    name: ClassVar[str] = "job-rows"

    devices: int
    rate: float

    async def measure(self, progress: Progress) -> JobRowsResult:
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleet-bench-")))
            address = await stack.enter_async_context(database_of("sqlite", folder))
            progress(f"making {self.devices} devices")
            await make_registry(address, self.devices)
            site = await stack.enter_async_context(serve_registry(address, folder, self.devices))
            command = module_command("tests.benchmarks.job_owners", site.redis_url)
            owners = await stack.enter_async_context(run_program("the owners", command, folder / "owners.log"))
            client = await stack.enter_async_context(AsyncFleetClient(f"http://{LOOPBACK}:{site.port}", TOKEN))
            store = redis.asyncio.Redis.from_url(site.redis_url)
            stack.push_async_callback(store.aclose)
            about = await store.info("server")
            meter = CpuMeter({"control": [site.pid], "redis": [about["process_id"]], "owners": [owners.pid]})
            progress("control comes to rest")
            await meter.settle("control", AT_REST, 5.0, _REST_SECONDS)
            progress("a job")
            return await self._job(client, store, meter)

    async def _job(self, client: AsyncFleetClient, store: "redis.asyncio.Redis", meter: CpuMeter) -> JobRowsResult:
        policy = {"rate": self.rate, "window": _WINDOW, "timeout_seconds": 60}
        asked = JobRequest.model_validate(
            {"name": "bench", "query": "online", "tool": TOOL, "arguments": {}, "policy": policy}
        )
        kept, clock = await _data(store), time.perf_counter
        begun = clock()
        made = await client.send(jobs.create(asked))
        while (await client.send(jobs.read(made.id))).state == "preparing":
            _check(clock() - begun)
            await asyncio.sleep(0.05)
        ready, most = clock(), kept

        async def run() -> Job:
            nonlocal most
            while True:
                await asyncio.sleep(_LOOK_SECONDS)
                most = max(most, await _data(store))
                job = await client.send(jobs.read(made.id))
                if clock() - ready >= self.seconds or not (job.counts.queued or job.counts.sent):
                    return job

        measured = await meter.during(run())
        if measured.result.state == "running":
            await client.send(jobs.steer(made.id, "stop"))
        counts = measured.result.counts
        ended = counts.ok + counts.error + counts.unknown
        cpu = {part: seconds / max(ended, 1) * 1e6 for part, seconds in measured.cpu.items()}
        return JobRowsResult(
            devices=self.devices,
            begun_seconds=ready - begun,
            rate=ended / measured.seconds,
            ended=ended,
            failed=counts.error + counts.unknown,
            control_idle=meter.idle["control"],
            cpu_us=cpu,
            redis_bytes=(kept, max(kept, most)),
        )


def _check(seconds: float) -> None:
    if seconds > _LONGEST_SECONDS:
        raise Unavailable(f"the job did not begin within {seconds:.0f} s")


async def _data(store: "redis.asyncio.Redis") -> int:
    return cast("int", (await store.info("memory"))["used_memory"])


def show_job_rows(console: Console, found: JobRowsResult) -> None:
    """Print what was measured."""
    table = Table("devices", "begins after", "a second", "ended", "failed", *(f"{part} us" for part in found.cpu_us))
    figures = (f"{found.begun_seconds:.1f} s", f"{found.rate:,.0f}", f"{found.ended:,}", str(found.failed))
    table.add_row(f"{found.devices:,}", *figures, *(f"{us:.0f}" for us in found.cpu_us.values()))
    console.print(table)
    if found.control_idle > AT_REST:
        console.print(f"control used {found.control_idle:.0%} of a core before, for its comparison with Redis")
    before, most = (size / 2**20 for size in found.redis_bytes)
    console.print(f"Redis kept {before:.0f} MiB, then at most {most - before:.1f} more; wanted: {MARKS}")
