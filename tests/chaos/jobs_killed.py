"""Control, workers and Redis are killed in the middle of jobs: nothing is lost, no device is asked twice."""

import asyncio
import itertools
import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import redis
from rich.console import Console

from fleet.adapters.sql.open import open_database
from fleet.adapters.sql.token_rows import TokenRows
from fleet.client import jobs
from fleet.client.call import ClientError
from fleet.client.client import AsyncFleetClient
from fleet.core.permissions import SCOPES
from fleet.roles.control.access import digest_of_token
from fleet.wire.control.jobs import Job, JobRequest
from fleet.workbench.bench.job_site import look
from fleet.workbench.bench.job_verdict import Result, Verdict, judge
from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.sim.crowd.crowd import Crowd, CrowdPlan, running
from tests.chaos.members import Ensemble, Member, build, role
from tests.chaos.run import Options
from tests.support.ports import free_port
from tests.support.redis_sentinel import SentinelSet

RESUMED_SECONDS: Final = 10.0
"""Longest time without a call after a kill."""
TOOL: Final = "self.audio_speaker.set_volume"
RATE, WINDOW = 20.0, 40
_TOKEN = "flt_chaos"
_NOWHERE = f"http://{LOOPBACK}:9/v1"
_LONGEST = 300.0

Strike = Callable[[], Awaitable[None]]


@dataclass(slots=True)
class Site:
    """What a scenario works with."""

    ensemble: Ensemble
    control: Member
    crowd: Crowd
    client: AsyncFleetClient
    sentinel: SentinelSet | None

    def strikes(self, chance: random.Random) -> Mapping[str, Strike]:
        """Return who may be killed; each is started again after a moment."""

        async def kill(member: Member) -> None:
            await asyncio.to_thread(member.discard)
            await asyncio.sleep(chance.uniform(0.1, 1.0))
            member.start()

        if self.sentinel is not None:
            return {"Redis's primary": lambda: _fail_over(self.sentinel)}
        workers = itertools.cycle(self.ensemble.workers)
        return {
            "control": lambda: kill(self.control),
            "worker": lambda: kill(next(workers)),
            "redis": lambda: kill(self.ensemble.redis),
        }


@dataclass(frozen=True, slots=True)
class Round:
    """A job in which somebody was killed. `gap`: the longest time without a call after that."""

    killed: str
    job: Job
    verdict: Verdict
    gap: float

    @property
    def faults(self) -> list[str]:
        """What is wrong with the results, in words; empty if nothing is."""
        counts = self.job.counts
        left = counts.queued + counts.waiting + counts.sent + counts.timed_out + counts.expired + counts.cancelled
        return [
            *self.verdict.wrong,
            *([f"{left} devices have no outcome: {counts}"] if left or self.job.state != "done" else []),
            *([f"{self.verdict.twice} devices were asked twice"] if self.verdict.twice else []),
        ]


async def kill_in_jobs(options: Options, repeat: int, console: Console) -> int:
    """Kill control, a worker and Redis so often each in the middle of a job; return the exit code."""
    return _tell(await hold(options, repeat, console), console)


async def fail_over_in_jobs(options: Options, repeat: int, console: Console) -> int:
    """Kill Redis's primary, which has a replica, so often in the middle of a job; return the exit code."""
    return _tell(await hold(options, repeat, console, sentinel=True), console)


async def hold(options: Options, repeat: int, console: Console, *, sentinel: bool = False) -> list[Round]:
    """Hold so many jobs for each kind of kill, the kinds in turn."""
    chance, rounds = random.Random(options.seed), list[Round]()
    async with _site(options, sentinel=sentinel) as site:
        strikes = list(site.strikes(chance).items())
        for number in range(repeat * len(strikes)):
            killed, strike = strikes[number % len(strikes)]
            found = await _round(site, number, killed, strike, chance)
            words = f"{number + 1}. {killed}: {_shown(found.job)}, {found.gap:.1f} s without a call"
            console.print(words, *found.faults[:5], highlight=False, markup=False)
            rounds.append(found)
    return rounds


async def _round(site: Site, number: int, killed: str, strike: Strike, chance: random.Random) -> Round:
    policy = {"rate": RATE, "window": WINDOW, "halt_share": 1.0, "timeout_seconds": 120}
    asked = JobRequest.model_validate(
        {"name": "chaos", "query": "", "tool": TOOL, "arguments": {"volume": number % 100}, "policy": policy}
    )
    told = site.crowd.ledger.pace.total()
    made = await site.client.send(jobs.create(asked))
    some = site.crowd.plan.count * chance.uniform(0.1, 0.6)
    async with asyncio.timeout(_LONGEST):
        while site.crowd.ledger.pace.total() - told < some:
            await asyncio.sleep(0.02)
        at = time.monotonic()
        await strike()
        while (job := await _job(site.client, made.id)) is None or job.state != "done":
            await asyncio.sleep(0.5)
    results = [
        Result(one.device, one.state, one.attempts, one.text)
        async for page in site.client.pages(jobs.executions(made.id))
        for one in page.items
    ]
    calls = site.crowd.ledger.document()["calls"]
    verdict = judge(results, calls, TOOL, json.dumps({"volume": number % 100}))
    return Round(killed, job, verdict, _gap(site.crowd.ledger.pace, at))


async def _job(client: AsyncFleetClient, job: int) -> Job | None:
    """Return a job; None while control does not answer."""
    try:
        return await client.send(jobs.read(job))
    except ClientError:
        return None


def _gap(pace: Mapping[int, int], at: float) -> float:
    """Return the longest time between two calls since a moment."""
    times = [at, *(tenth / 10 for tenth in sorted(pace) if tenth / 10 > at)]
    return max((later - earlier for earlier, later in itertools.pairwise(times)), default=0.0)


@asynccontextmanager
async def _site(options: Options, *, sentinel: bool) -> AsyncIterator[Site]:
    port, data = free_port(), options.out / "control"
    data.mkdir(parents=True, exist_ok=True)
    async with open_database(f"sqlite:///{data / 'control.db'}") as database:
        await TokenRows(database).add(1, "chaos", digest_of_token(_TOKEN), SCOPES, 1)
    async with AsyncExitStack() as stack:
        pair = SentinelSet(options.out) if sentinel else None
        settings: dict[str, Any] = {"control_port": port, "data_dir": str(data), "activation": "open", "shards": 4}
        if pair is not None:
            stack.callback(pair.discard)
            await asyncio.to_thread(pair.start)
            settings["redis_url"] = pair.url
        ensemble = build(options.out, _NOWHERE, appendfsync=options.appendfsync, **settings)
        ensemble.edges.clear()
        stack.callback(ensemble.discard)
        await asyncio.to_thread(ensemble.start)
        control = role(options.out, "control", ensemble, settings, port)
        stack.callback(control.discard)
        control.start()
        await asyncio.to_thread(control.wait_ready)
        for worker in ensemble.workers:
            await asyncio.to_thread(worker.wait_ready)
        crowd = await stack.enter_async_context(running(CrowdPlan(ensemble.ota_url, options.devices, rate=50.0)))
        client = await stack.enter_async_context(AsyncFleetClient(f"http://{LOOPBACK}:{port}", _TOKEN))
        async with asyncio.timeout(_LONGEST):
            await crowd.boot()
            await _until_known(client, options.devices)
        yield Site(ensemble, control, crowd, client, pair)


async def _until_known(client: AsyncFleetClient, devices: int) -> None:
    asked = JobRequest.model_validate({"name": "x", "query": "", "kind": "reboot"})
    while (seen := await look(client, jobs.preview(asked))) is None or seen.online < devices:
        await asyncio.sleep(0.5)


async def _fail_over(pair: SentinelSet) -> None:
    """Kill the primary; when all Sentinels have agreed on the next one, start the killed one as its replica.

    It ends when each Sentinel takes the replica for a good one: before that they would promote nobody at the next kill.
    """
    await asyncio.to_thread(pair.kill_primary)
    pair.primary, pair.replica = pair.replica, pair.primary
    while not all(_primary_of(port) == pair.primary.port for port in pair.ports):
        await asyncio.sleep(0.05)
    await asyncio.to_thread(pair.replica.start)
    with redis.Redis(port=pair.replica.port) as replica, redis.Redis(port=pair.primary.port) as primary:
        replica.replicaof(LOOPBACK, pair.primary.port)
        while not primary.info("replication")["connected_slaves"]:
            await asyncio.sleep(0.05)
    await asyncio.to_thread(pair.calm)
    while not all(_has_good_replica(port, pair.primary.port) for port in pair.ports):
        await asyncio.sleep(0.05)


def _has_good_replica(sentinel: int, primary: int) -> bool:
    with redis.Redis(port=sentinel, decode_responses=True) as client:
        (replica,) = client.sentinel_slaves("fleet")
    whole = replica["master-link-status"] == "ok" and int(replica["master-port"]) == primary
    return whole and replica["flags"] == "slave"


def _primary_of(sentinel: int) -> int:
    with redis.Redis(port=sentinel, decode_responses=True) as client:
        (state,) = client.sentinel_masters().values()
        return int(state["port"])


def _shown(job: Job) -> str:
    counts = {state: count for state, count in job.counts.model_dump().items() if count}
    return f"{job.state} {counts}"


def _tell(rounds: list[Round], console: Console) -> int:
    for killed in dict.fromkeys(one.killed for one in rounds):
        those = [one for one in rounds if one.killed == killed]
        gaps = sorted(one.gap for one in those)
        told, unknown = (sum(one.verdict.told for one in those), sum(one.job.counts.unknown for one in those))
        console.print(
            f"{len(those)} kills of {killed}: no call for {gaps[len(gaps) // 2]:.1f} s, at most {gaps[-1]:.1f} s, "
            f"{sum(gap > RESUMED_SECONDS for gap in gaps)} times more than {RESUMED_SECONDS:g} s; "
            f"{told} calls, {unknown} unknown, {sum(len(one.faults) for one in those)} faults"
        )
    return 1 if any(one.faults or one.gap > RESUMED_SECONDS for one in rounds) else 0
