"""One step of jobs after the other: hands devices over to the owners of their shards, as the policy says.

A hand-over is written into SQL before Redis hears of it, under an id made of job, device and attempt. Killed in
between, the next leader puts the same call again, which Redis takes once. If Redis lost its data meanwhile, nobody
does: the outcome of such a call is unknown.
"""

import asyncio
import logging
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.device_looks import DeviceNow
from fleet.adapters.redis.shards.job_calls import MOST_QUEUED, JobCalls
from fleet.adapters.sql.job_evidence import JobEvidence
from fleet.adapters.sql.job_executions import AT_ONCE, NEVER, JobExecutions, NextDevices, SentCall
from fleet.adapters.sql.job_feed import JobFeed
from fleet.adapters.sql.job_rows import JobRow
from fleet.adapters.sql.mac_numbers import mac_text
from fleet.core.connection_pauses import JITTER_MS, after_connection
from fleet.core.job_holds import hold_of
from fleet.core.rollout import Advance, Done, Feed, Halt, JobProgress, Pace, Policy, Wait, step
from fleet.core.shared_places import SharedPlaces
from fleet.core.tenant_turns import TenantTurns
from fleet.roles.control.access import milliseconds
from fleet.roles.control.job_policies import policy_of, terms_of_job
from fleet.roles.control.job_tasks.calls import BUSY_MS, SHARD_BUSY
from fleet.roles.control.job_tasks.directory import JobTasks
from fleet.roles.control.leader.job_devices import reach_of
from fleet.roles.control.leader.job_outcomes import JobOutcomes
from fleet.wire.operator_calls import IN_SESSION, OFFLINE

log = logging.getLogger(__name__)

_FULL_MS = 1_000, 9_000
"""How long a device waits for a place in the queue of its shard: between these."""
_SHOWN = ("soak", "approval", "devices", "members")
"""Reasons to wait that last long enough to be shown."""


class JobWork:
    """The work under one lease."""

    def __init__(self, store: Store, feed: JobFeed, calls: JobCalls, timezone: str) -> None:
        self.feed, self._calls, self._timezone = feed, calls, timezone
        self.tasks, self._evidence = JobTasks(calls, feed.database, store), JobEvidence(feed.database)
        self._executions = JobExecutions(feed)
        self.places, self.turns, self._keys = SharedPlaces(MOST_QUEUED), TenantTurns(), store.keys
        self._outcomes = JobOutcomes(self.tasks, self._executions, self._evidence, self.places)
        self._paces: dict[int, Pace] = {}
        self._life = ""

    async def begin(self) -> None:
        """Refuse earlier leases; hand over again what they noted but may not have handed over."""
        await self._calls.begin()
        self._life = await self.feed.begin()
        if not await self._check_life():
            for job in await self.feed.active():
                await self._put(job, await self._executions.sent(job.id))
        await self._settle()

    async def look(self) -> None:
        """Do what is needed every few seconds: end what has no outcome, and notice that Redis lost its data."""
        await self._check_life()
        for job in await self.feed.active():
            if job.counts["sent"]:
                await self._outcomes.look_up(job, milliseconds())
        await self._settle()

    async def _settle(self) -> None:
        """Count again who has places: a device that is forgotten while it has one never gives it back."""
        jobs = [job for job in await self.feed.active() if job.counts["sent"]]
        sent = [(job, one.mac) for job in jobs for one in await self._executions.sent(job.id)]
        self.places.settle(((job.id, mac), job.tenant, self._keys.shard(mac_text(mac))) for job, mac in sent)

    async def _check_life(self) -> bool:
        """Return whether Redis may have lost its data since the last hand-over; what it lost is unknown then."""
        life = await self._calls.life()
        if life == self._life:
            return False
        await self._calls.begin()
        for job in await self.feed.active():
            await self._outcomes.give_up_lost(job)
        await self.feed.note_life(life)
        self._life = life
        return True

    async def sweep(self) -> None:
        """Look for devices that are connected though their event was missed."""
        for job in await self.feed.active():
            after: int | None = -1
            while job.counts["waiting"] and after is not None:
                macs, after = await self._executions.connected(job, after, AT_ONCE)
                await self._wake([job], macs)

    async def step(self, jobs: Sequence[JobRow], connected: Iterable[int], started: Iterable[int] = ()) -> bool:
        """Collect outcomes, then decide on the jobs, in turns; return whether there is more to do at once."""
        now = milliseconds()
        collected = await self._outcomes.collect(jobs, now)
        await self._wake(jobs, list(connected))
        await self._wake_for_sessions(jobs, list(started), now)
        if collected:
            jobs = await self.feed.active()
        busy = collected >= AT_ONCE // 2
        self.places.measure(await self._calls.queued())
        for job in self.turns.round(jobs, asyncio.get_running_loop().time):
            if job.under_way and terms_of_job(job).evidence:
                busy |= await self._outcomes.read_evidence(job, now)
                job = await self.feed.read(job.id)
            await self.feed.announce(job, now)
            busy |= await self._advance(job, now)
        gone = self._paces.keys() - {job.id for job in jobs}
        for number in gone:
            del self._paces[number]
        return busy or self.turns.cut

    async def _wake(self, jobs: Iterable[JobRow], macs: Sequence[int]) -> None:
        waiting, now = [job.id for job in jobs if job.counts["waiting"]], milliseconds()
        for at in range(0, len(macs) if waiting else 0, AT_ONCE):
            due = {mac: after_connection(now) for mac in macs[at : at + AT_ONCE]}
            await self._executions.wake(waiting, due)

    async def _wake_for_sessions(self, jobs: Iterable[JobRow], macs: Sequence[int], now: int) -> None:
        waiting = [job.id for job in jobs if job.counts["waiting"] and terms_of_job(job).sessions]
        for at in range(0, len(macs) if waiting else 0, AT_ONCE):
            await self._executions.wake(waiting, dict.fromkeys(macs[at : at + AT_ONCE], now), session=True)

    async def _advance(self, job: JobRow, now: int) -> bool:
        """Do the next thing with a job; return whether there is more to do at once."""
        if job.state == "scheduled" and now < job.expires:
            return False
        terms = terms_of_job(job)
        if terms.recalled and job.under_way and job.state in ("halted", "stopping"):
            await self._outcomes.recall(job, now)
        if terms.evidence and job.witnessed is None:
            await self.feed.change(job, now, witnessed=await self._evidence.newest())
            return True
        if job.state == "stopping":
            return await self._close(job, now)
        if job.state != "preparing" and now >= job.expires:
            return await self._close(job, now)
        if job.retry_states and job.state != "preparing":
            return await self._executions.retry(job, now)
        return await self._decide(job, now) if job.state == "running" else False

    async def _close(self, job: JobRow, now: int) -> bool:
        """Give up what was not handed over; end the job when all else has its outcome."""
        stopping = job.state == "stopping"
        if await self._executions.close(job, "cancelled" if stopping else "expired", now):
            return True
        if not job.under_way:
            state, reason = ("stopped", job.reason) if stopping else ("done", "it expired")
            await self.feed.change(job, now, state=state, reason=reason, ended=now, retry_states=0)
        return False

    async def _decide(self, job: JobRow, now: int) -> bool:
        policy, clock = policy_of(job), asyncio.get_running_loop().time()
        pace = self._paces.setdefault(job.id, Pace(policy.rate, clock))
        allowance = pace.allowance(clock)
        found = await self._executions.candidates(job, now, min(AT_ONCE, 2 * allowance + 10))
        progress = JobProgress(
            stage=job.stage,
            fresh=len(found.fresh),
            due=len(found.due),
            waiting=job.counts["waiting"],
            in_flight=job.under_way,
            ok=job.stage_ok,
            failed=job.stage_failed,
            recent=job.recent,
            allowance=allowance,
            settled_ms=job.settled,
            approved=job.approved,
            growing=job.continuous,
        )
        room = sum(self.places.room(job.tenant, shard) for shard in range(self._keys.shards))
        room = room if terms_of_job(job).connected else AT_ONCE
        match step(replace(policy, window=min(policy.window, job.under_way + room)), progress, now):
            case Feed(most):
                handed, left = await self._hand_over(job, policy, found, min(most, AT_ONCE), now)
                pace.take(handed)
                return left and handed < allowance
            case Advance():
                reach = await reach_of(self.feed, job, policy, job.stage + 1)
                begun = {"stage_ok": 0, "stage_failed": 0, "settled": None, "reason": ""}
                await self.feed.change(job, now, stage=job.stage + 1, reach=reach, **begun)
                return True
            case Halt() as halt:
                log.warning("job halted", extra={"job": job.id, "reason": halt.reason})
                await self.feed.change(job, now, state="halted", reason=halt.reason)
            case Done():
                await self.feed.change(job, now, state="done", reason="", ended=now)
            case Wait(reason, settled):
                settling = {"settled": now} if settled and job.settled is None else {}
                shown = reason if reason in _SHOWN else ""
                if settling or job.reason != shown:
                    await self.feed.change(job, now, reason=shown, **settling)
        return False

    async def _hand_over(
        self, job: JobRow, policy: Policy, found: NextDevices, most: int, now: int
    ) -> tuple[int, bool]:
        """Hand some candidates over; return how many, and whether there may be more."""
        candidates = [*found.due, *found.fresh][: most + most // 4 + 10]
        asked = [mac_text(one.mac) for one in candidates] if terms_of_job(job).connected else []
        devices = await self._calls.look(asked)
        ready: list[int] = []
        full = False
        held: dict[int, tuple[int, str]] = {}
        gone: list[int] = []
        for one in candidates:
            if len(ready) == most:
                break
            mac = mac_text(one.mac)
            device = devices.get(mac)
            wait = self._held(policy, device, now) if device else None
            if not one.there:
                gone.append(one.mac)
            elif wait is not None:
                held[one.mac] = wait
            elif device is None or self.places.admit((job.id, one.mac), job.tenant, self._keys.shard(mac)):
                ready.append(one.mac)
            else:
                full, held[one.mac] = True, (now + random.randint(*_FULL_MS), SHARD_BUSY)
        sent = await self._executions.hand_over(job, now, ready, held, gone)
        for number in set(ready) - {one.mac for one in sent}:
            self.places.leave((job.id, number))
        await self._put(job, sent)
        if sent and terms_of_job(job).recalled and (after := await self.feed.read(job.id)).state == "stopping":
            # It was stopped after they were noted: whoever stopped it may have found none of them in Redis.
            await self._outcomes.recall(after, now)
        return len(ready), len(ready) < most and not full

    def _held(self, policy: Policy, device: DeviceNow, now: int) -> tuple[int, str] | None:
        """Return until when a device waits, and why; None if it does not."""
        hold = hold_of(device, now, self._timezone, idle=policy.idle, quiet=policy.quiet)
        if hold is None:
            return None
        if hold.reason == OFFLINE:
            return NEVER, OFFLINE
        left = BUSY_MS if hold.reason == IN_SESSION else hold.left_ms + random.randrange(JITTER_MS)
        return now + left, hold.reason

    async def _put(self, job: JobRow, sent: Sequence[SentCall]) -> None:
        task = self.tasks.of(job)
        for at in range(0, len(sent), AT_ONCE):
            ends = await task.start(sent[at : at + AT_ONCE])
            await self._outcomes.store(ends, [job], milliseconds())
