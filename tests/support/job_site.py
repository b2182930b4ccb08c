"""Jobs without devices: control's work on jobs, and owners of all shards that answer each call as the test says."""

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from sqlalchemy import insert

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.leases import Leases
from fleet.adapters.redis.shards.operator_calls import CallState, OperatorCalls, QueuedCall
from fleet.adapters.redis.shards.owner import Owner
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.image_rows import ImageRow, ImageRows, NewImage
from fleet.adapters.sql.job_feed import JobFeed
from fleet.adapters.sql.job_rows import ExecutionRow, JobRow, JobRows, NewJob
from fleet.adapters.sql.mac_numbers import mac_number, mac_text
from fleet.adapters.sql.schema import DEVICE
from fleet.roles.control.access import milliseconds
from fleet.roles.control.job_orders import order_of
from fleet.roles.control.job_policies import body_of
from fleet.roles.control.leader.job_devices import JobDevices
from fleet.roles.control.leader.job_feeder import JobFeeder
from fleet.roles.control.leader.job_work import JobWork
from fleet.wire.control.images import ImageKind
from fleet.wire.control.jobs import JobRequest
from fleet.wire.job_states import ExecutionState
from fleet.wire.operator_calls import OperatorCall

Answer = Callable[[OperatorCall], tuple[CallState, str] | None]
"""None: the call is under way for ever."""
FIRST = mac_number("02:00:00:00:00:00")
NOW = 1_800_000_000_000
LIMIT = 240.0


def done(_: OperatorCall) -> tuple[CallState, str]:
    return "ok", "true"


class JobSite:
    """A registry, a Redis, the leader's work on jobs, and owners."""

    def __init__(self, database: Database, store: Store, timezone: str = "UTC") -> None:
        self.database, self.store = database, store
        self.feeder, self.devices = JobFeeder(store, database, timezone), JobDevices(database)
        self.queues = OperatorCalls(store)
        self.published: Counter[str] = Counter()
        """Calls by device."""
        self.names: Counter[str] = Counter()
        self.fence = 0
        self.work: JobWork
        self._owners: dict[int, Owner] = {}

    async def lead(self) -> JobWork:
        """Take over, as another process of control does; return the work of the lease."""
        self.fence += 1
        self.work = await self.feeder.begin(self.fence)
        # A step gives all jobs their turn, however slow the machine is.
        self.work.turns.seconds = math.inf
        return self.work

    async def add_devices(self, count: int, tenant: int = 1, **columns: Any) -> list[str]:
        """Add devices that are connected."""
        macs = list(range(FIRST, FIRST + count))
        values = {"tenant": tenant, "search": "", "online": True, **columns}
        async with self.database.writing() as connection:
            await connection.execute(insert(DEVICE), [{**values, "mac": mac} for mac in macs])
        names = [mac_text(mac) for mac in macs]
        await self.connect(names)
        return names

    async def connect(self, macs: Iterable[str], *, online: bool = True) -> None:
        pipe = self.store.client.pipeline(transaction=False)
        for mac in macs:
            pipe.hset(self.store.keys.device(mac), "on", str(int(online)))
        await self.store.ask(pipe.execute())

    async def add_image(self, version: str, kind: ImageKind = "firmware", board: str = "board") -> ImageRow:
        """Add an image to the registry; there is no file."""
        return await ImageRows(self.database, 1).add(NewImage(kind, board, version, "ab" * 32, 9, NOW, "token:test"))

    async def add_job(
        self,
        tenant: int = 1,
        created: int | None = None,
        image: ImageRow | None = None,
        expires: int = 2**45,
        **fields: Any,
    ) -> JobRow:
        asked = JobRequest.model_validate({"name": "j", "query": "", "tool": "self.audio_speaker.set_volume", **fields})
        at = NOW if created is None else created
        return await JobRows(self.database, tenant).add(
            NewJob(
                name=asked.name,
                kind=asked.kind,
                body={**body_of(asked), **(order_of(asked, image, "http://api", milliseconds()) if image else {})},
                query=asked.query,
                continuous=asked.continuous,
                policy=asked.policy.model_dump(),
                created=at,
                created_by="token:test",
                expires=expires,
            )
        )

    async def prepare(self) -> None:
        """Write down the devices of all new jobs."""
        feed = JobFeed(self.database, self.fence)
        while await self.devices.step(feed):
            pass

    async def job(self, job: int, tenant: int = 1) -> JobRow:
        found = await JobRows(self.database, tenant).read(job)
        assert found is not None
        return found

    async def executions(self, job: int, state: ExecutionState | None = None) -> list[ExecutionRow]:
        return await JobRows(self.database, 1).executions(job, state, [], 100_000)

    async def step(self) -> bool:
        return await self.feeder.step(self.work)

    async def fill(self, job: int, sent: int, tenant: int = 1) -> None:
        """Feed until so many devices of a job are under way; none of them gets its call."""
        while (await self.job(job, tenant)).counts["sent"] < sent:
            await self.step()
            await asyncio.sleep(0.01)

    async def run(self, job: int, answer: Answer = done) -> JobRow:
        """Feed and answer until a job is no longer running, or has nothing under way."""
        async with asyncio.timeout(LIMIT):
            while True:
                busy = await self.step()
                answered = await self.answer(answer)
                found = await self.job(job)
                if found.state not in ("running", "stopping") or (not answered and found.reason in ("devices", "soak")):
                    return found
                await asyncio.sleep(0.01 if busy or answered else 0.05)

    async def waiting_calls(self) -> list[tuple[int, str, OperatorCall]]:
        """Return the calls in the queues of all shards."""
        return [(one.shard, one.id, one.call) for one in await self._queued() if one.call is not None]

    async def answer(self, answer: Answer = done) -> int:
        """Make the calls that wait, as their owners do; return how many ended."""
        ended = 0
        for entry in await self._queued():
            call = entry.call
            assert call is not None
            outcome = answer(call)
            if outcome is None:
                continue
            owner = await self._owner(entry.shard)
            if outcome[0] != "not_sent":
                self.published[call.device] += 1
                self.names[f"{call.device} {call.call}"] += 1
            await self.queues.end(owner, call, *outcome, entry.id)
            ended += 1
        return ended

    async def _queued(self) -> list[QueuedCall]:
        """Return what is in the queues; unlike an owner, do not wait for more when there is nothing."""
        keys = self.store.keys
        pipe = self.store.client.pipeline(transaction=False)
        for shard in range(keys.shards):
            pipe.xlen(keys.operator_calls(shard))
        filled = [shard for shard, count in enumerate(await self.store.ask(pipe.execute())) if count]
        return await self.queues.read(dict.fromkeys(filled, "0")) if filled else []

    async def _owner(self, shard: int) -> Owner:
        if shard not in self._owners:
            owner = await Leases(self.store, "w", 100_000).take(shard)
            assert owner is not None
            self._owners[shard] = owner
        return self._owners[shard]
