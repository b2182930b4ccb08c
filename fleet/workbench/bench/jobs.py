"""`scripts/bench jobs`: jobs over a crowd of simulated devices, beside devices that talk."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from fleet.client import jobs
from fleet.client.client import AsyncFleetClient
from fleet.ground.errors import Unavailable
from fleet.wire.control.jobs import Job, JobRequest
from fleet.workbench.bench.crowd import CrowdProcesses
from fleet.workbench.bench.experiment import Experiment, Progress
from fleet.workbench.bench.figures import Percentiles
from fleet.workbench.bench.job_site import QUERY, JobSite, count_outer, job_site, look
from fleet.workbench.bench.job_verdict import Result, Verdict, judge
from fleet.workbench.bench.pace import rate_of, times_of
from fleet.workbench.bench.usage import Measured
from fleet.workbench.sim.crowd.crowd import CrowdPlan
from fleet.workbench.sim.crowd.shares import Shares

TOOL: Final = "self.audio_speaker.set_volume"
BOOTING: Final = 60
"""Devices of a process that boot at the same time, at most: a busy machine takes longer, but refuses nobody."""
TALK_RATE: Final = 10.0
"""Turns a second of all talking devices together."""
SHARES: Final = Shares(offline=0.3, newer=0.2, error=0.02, silent=0.002, late=0.001)
CANARY: Final = Shares(offline=0.3, newer=0.2, error=0.3)
WINDOW: Final = 2_000
_POLL_SECONDS = 0.5
"""More often would be seen in the CPU time of control."""
AT_REST: Final = 0.05
"""Share of a core: what control uses more than that is still the work of the boots."""
_REST_SECONDS = 3.0
_END_SECONDS = 300.0
_SLOWER = 20.0
"""How many times longer a job may take than at its rate."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """One job over all devices."""

    verdict: Verdict
    rate: float
    """Calls a second that came to devices, between the first and the last tenth."""
    cpu_us: Mapping[str, float]
    """CPU of an execution by part, in microseconds, without what the part uses at rest."""
    redis_bytes: tuple[int, int]
    """What Redis kept before the job, and at most during it."""
    memory: Mapping[str, int]
    """Resident bytes of each part at its end."""
    talk_ms: Percentiles
    """Turns beside it."""


@dataclass(frozen=True, slots=True)
class HaltResult:
    """A canary whose devices fail."""

    touched: int
    """Devices that were told something."""
    seconds: float
    """From the call whose result is the last of the sample to the halt."""
    reason: str


@dataclass(frozen=True, slots=True)
class JobsFigures:
    """All that was measured."""

    devices: int
    online: int
    broker_files: Sequence[int]
    """Open files of each broker; more than one: devices connect to the others, which are bridged to the first."""
    boot_seconds: float
    create_seconds: float
    """From the request for a job to its first stage."""
    control_idle: float
    """Share of a core that control used before the first job; it is subtracted from what a job costs."""
    quiet_ms: Percentiles
    """Turns without a job."""
    alone: JobResult
    beside: JobResult
    halt: HaltResult


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsExperiment(Experiment[JobsFigures]):
    """Tool jobs over a crowd: alone, beside talking devices, and a canary that fails."""

    name: ClassVar[str] = "jobs"

    devices: int
    rate: float
    talkers: int
    workers: int
    outer: int | None = None
    """Brokers that devices have of their own; None: as many as open files demand."""

    async def measure(self, progress: Progress) -> JobsFigures:
        async with AsyncExitStack() as stack:
            progress("starting")
            plan = CrowdPlan("", self.devices, rate=150.0, shares=SHARES, at_once=BOOTING)
            site = await stack.enter_async_context(job_site(plan, self.workers, count_outer(plan, self.outer)))
            progress(f"{self.devices} devices boot")
            begun = time.perf_counter()
            online = await site.crowd.boot(60 + self.devices / 40)
            await site.testbed.meet(self.talkers, self.talkers)
            await site.until_registered(self.devices, online)
            booted = time.perf_counter() - begun
            return await self._jobs(site, online, booted, progress)

    async def _jobs(self, site: JobSite, online: int, booted: float, progress: Progress) -> JobsFigures:
        await site.testbed.rest()
        await settle(site)
        idle, files = site.meter.idle["control"], site.open_files()
        seconds = max(3.0, online / self.rate)
        progress("turns without a job")
        await self._talk(site, 3.0)
        quiet = [await self._talk(site, seconds) for _ in range(self.repeats)]
        progress("a job alone")
        created, alone = await self._job(site, 11, talk=0.0)
        progress("jobs beside turns")
        beside = [(await self._job(site, 21 + number, talk=seconds))[1] for number in range(self.repeats)]
        progress("a canary that fails")
        halt = await self._halt(site)
        return JobsFigures(
            devices=self.devices,
            online=online,
            broker_files=files,
            boot_seconds=booted,
            create_seconds=created,
            control_idle=idle,
            quiet_ms=Percentiles.of([ms for some in quiet for ms in some]),
            alone=alone,
            beside=JobResult(
                verdict=beside[-1].verdict,
                rate=sum(one.rate for one in beside) / len(beside),
                cpu_us=beside[-1].cpu_us,
                redis_bytes=beside[-1].redis_bytes,
                memory=beside[-1].memory,
                talk_ms=beside[-1].talk_ms,
            ),
            halt=halt,
        )

    async def _talk(self, site: JobSite, seconds: float) -> list[float]:
        if not seconds:
            return []
        found: list[float] = (await site.testbed.load.ask("speak", rate=TALK_RATE, seconds=seconds, calls=1))["ms"]
        return found

    async def _job(self, site: JobSite, volume: int, talk: float) -> tuple[float, JobResult]:
        policy = {"rate": self.rate, "window": WINDOW, "halt_share": 1.0, "timeout_seconds": 60}
        asked = JobRequest.model_validate(
            {"name": "bench", "query": QUERY, "tool": TOOL, "arguments": {"volume": volume}, "policy": policy}
        )
        before, kept, begun = await _paces(site.crowd), await site.testbed.data(), time.perf_counter()
        made = await site.client.send(jobs.create(asked))
        await _until(site.client, made.id, lambda job: job.state != "preparing", 0.05, self._longest)
        created = time.perf_counter() - begun

        sizes = list[int]()

        async def work() -> tuple[int, list[float]]:
            async with asyncio.TaskGroup() as group:
                talking = group.create_task(self._talk(site, talk), name="talk")
                watch = group.create_task(_watch(site, sizes), name="Redis")
                await _until(site.client, made.id, _is_through, _POLL_SECONDS, self._longest)
                watch.cancel()
            return max(sizes, default=0), talking.result()

        measured = await site.meter.during(work())
        most, ms = measured.result
        memory = {part: used.memory for part, used in site.meter.look().items()}
        await site.client.send(jobs.steer(made.id, "stop"))
        results = [result async for result in _results(site.client, made.id)]
        told = await site.crowd.report()
        arguments = json.dumps({"volume": volume}, sort_keys=True)
        verdict = judge(results, told["calls"], TOOL, arguments)
        rate = rate_of(times_of(told["pace"], before))
        cpu, talked = us_each(measured, verdict.told), Percentiles.of(ms)
        return created, JobResult(verdict, rate, cpu, (kept, max(kept, most)), memory, talked)

    @property
    def _longest(self) -> float:
        return _END_SECONDS + self.devices / self.rate * _SLOWER

    async def _halt(self, site: JobSite) -> HaltResult:
        await site.crowd.behave(CANARY)
        before = await _paces(site.crowd)
        policy = {"rate": self.rate, "window": 50, "stages": [{"count": max(self.devices // 100, 50)}, {"share": 1}]}
        asked = JobRequest.model_validate(
            {"name": "canary", "query": QUERY, "tool": TOOL, "arguments": {"volume": 99}, "policy": policy}
        )
        made = await site.client.send(jobs.create(asked))
        sample = made.policy.halt_sample
        ended = await _until(site.client, made.id, lambda job: job.state in ("halted", "done"), 0.05)
        halted = time.monotonic()
        await _until(site.client, made.id, lambda job: not job.counts.sent, _POLL_SECONDS)
        fresh = times_of((await site.crowd.report())["pace"], before)
        seconds = halted - fresh[sample - 1] if len(fresh) >= sample else 0.0
        return HaltResult(len(fresh), seconds, f"{ended.state}: {ended.reason}")


async def settle(site: JobSite) -> None:
    """Measure what all use at rest, once control has written what the boots have left."""
    await site.meter.settle("control", AT_REST, _REST_SECONDS, _END_SECONDS)


def _is_through(job: Job) -> bool:
    """Whether all but the devices that are offline have their outcomes."""
    return job.state != "running" or not (job.counts.queued or job.counts.sent)


async def _until(
    client: AsyncFleetClient, number: int, reached: Callable[[Job], bool], pause: float, seconds: float = _END_SECONDS
) -> Job:
    clock = asyncio.get_running_loop().time
    until = clock() + seconds
    while not (job := await look(client, jobs.read(number))) or not reached(job):
        if clock() > until:
            raise Unavailable(f"the job was not through after {seconds:g} s: {job}")
        await asyncio.sleep(pause)
    return job


async def _watch(site: JobSite, sizes: list[int]) -> None:
    """Note what Redis keeps, until it is cancelled."""
    while True:
        sizes.append(await site.testbed.data())
        await asyncio.sleep(_POLL_SECONDS)


async def _results(client: AsyncFleetClient, job: int) -> AsyncIterator[Result]:
    async for page in client.pages(jobs.executions(job)):
        for one in page.items:
            yield Result(one.device, one.state, one.attempts, one.text)


async def _paces(crowd: CrowdProcesses) -> Counter[str]:
    return Counter((await crowd.report())["pace"])


def us_each(measured: Measured[Any], count: int) -> Mapping[str, float]:
    """Return the CPU time of each part in microseconds."""
    return {part: seconds / max(count, 1) * 1e6 for part, seconds in measured.cpu.items()}
