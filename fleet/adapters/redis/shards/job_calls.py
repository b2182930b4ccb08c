"""Calls of jobs: operators' calls in the queues of the shards, with a fence, and with outcomes that control collects.

The record of a call lives until control has stored its outcome; until then it keeps a repeated hand-over from becoming
a second call. After that, the fence does.
"""

import hashlib
import secrets
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Any, Final, cast

import msgspec

from fleet.adapters.redis import keys as names
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.device_looks import DeviceLooks
from fleet.adapters.redis.shards.operator_calls import MOST_QUEUED as LONGEST_QUEUE
from fleet.adapters.redis.shards.operator_calls import MOST_RECORDS, CallState
from fleet.wire.identity import parse_username
from fleet.wire.operator_calls import OperatorCall

MOST_QUEUED: Final = 500
"""Calls of jobs that a shard has in its queue, at most: half of it is for people. Tenants share both halves."""
KEPT_SECONDS: Final = 7 * 24 * 3600.0
"""Life of a call's record: control must collect its outcome within this time."""
AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The outcome of a call, as its shard keeps it until it is forgotten."""

    shard: int
    entry: str
    device: str
    call: str
    state: CallState
    text: str


class JobCalls:
    """Hands calls of jobs over to the shards, and collects their outcomes. All methods raise `Unavailable`.

    Args:
        store: Redis.
        fence: Of the lease of control.
    """

    def __init__(self, store: Store, fence: int) -> None:
        self._store, self.fence, self.look = store, fence, DeviceLooks(store).look
        self.most_queued, self._outcomes = MOST_QUEUED, store.keys.job_outcomes

    @classmethod
    def of_states(cls, store: Store, fence: int) -> "JobCalls":
        """Return the same for the calls that desired states make, whose ids begin with `state-`."""
        calls = cls(store, fence)
        # Jobs go first: a person watches them.
        calls.most_queued, calls._outcomes = MOST_QUEUED // 2, store.keys.state_outcomes
        return calls

    @property
    def _shards(self) -> range:
        return range(self._store.keys.shards)

    async def begin(self) -> None:
        """Refuse hand-overs under earlier leases from now on.

        Raises:
            Fenced: There is a newer lease already.
        """
        for shard in self._shards:
            await self._store.call("fleet_jobs_begin", [self._store.keys.job_fence(shard)], [self.fence])

    async def life(self) -> str:
        """Return a text that is another one after Redis may have lost what it was told."""
        nodes = await self._store.ask(self._store.client.primaries())
        runs = [str((await self._store.ask(node.info("server")))["run_id"]) for node in nodes]
        mark = secrets.token_hex(8)
        await self._store.ask(cast("Awaitable[Any]", self._store.client.set(names.CONTROL_LIFE, mark, nx=True)))
        mark = await self._store.ask(cast("Awaitable[str]", self._store.client.get(names.CONTROL_LIFE)))
        return hashlib.sha256("\n".join((mark, *sorted(runs))).encode()).hexdigest()

    async def queued(self) -> Mapping[int, int]:
        """Return how many calls of jobs and desired states the queue of each shard has.

        Those of people count too, while all together leave half of the places for jobs free.
        """
        asked = [([self._store.keys.operator_calls(shard)], [self.most_queued]) for shard in self._shards]
        answers = await self._store.call_each("fleet_job_calls_queued", asked)
        return {shard: int(count) for shard, (count,) in zip(self._shards, answers, strict=True)}

    async def put(self, calls: Sequence[OperatorCall], within_ms: int) -> list[OperatorCall]:
        """Queue calls; one that its shard knows already stays as it is. Return those for which there was no room.

        Raises:
            Fenced: There is a newer lease.
        """
        keys = self._store.keys
        shards = names.by_shard(keys.shards, calls, attrgetter("device"))
        terms = self.fence, round(KEPT_SECONDS * 1000), within_ms, self.most_queued, LONGEST_QUEUE, MOST_RECORDS
        asked = []
        for shard, some in shards.items():
            words: list[str | int | bytes] = [names.prefix(shard), *terms]
            for one in some:
                words += (one.device, one.call, msgspec.json.encode(one), one.tool, one.tenant)
            asked.append(([keys.operator_calls(shard), keys.operator_records(shard), keys.job_fence(shard)], words))
        answers = await self._store.call_each("fleet_job_calls_put", asked)
        pairs = zip(shards.values(), answers, strict=True)
        return [one for some, said in pairs for one, word in zip(some, said, strict=True) if word == "FULL"]

    async def outcomes(self) -> list[JobOutcome]:
        """Return the oldest outcomes of each shard."""
        pipe = self._store.client.pipeline(transaction=False)
        for shard in self._shards:
            pipe.xrange(self._outcomes(shard), count=max(1, AT_ONCE // len(self._shards)))
        found = await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))
        return [
            JobOutcome(shard, entry, fields["m"], fields["c"], fields["o"], fields["t"])
            for shard, entries in zip(self._shards, found, strict=True)
            for entry, fields in entries
        ]

    async def forget(self, outcomes: Iterable[JobOutcome]) -> None:
        """Remove outcomes that are stored, and the records of their calls."""
        keys, shards = self._store.keys, dict[int, list[JobOutcome]]()
        for one in outcomes:
            shards.setdefault(one.shard, []).append(one)
        await self._store.call_each(
            "fleet_job_calls_forget",
            [
                (
                    [self._outcomes(shard), keys.operator_records(shard)],
                    [names.prefix(shard), *(word for one in some for word in (one.entry, one.device, one.call))],
                )
                for shard, some in shards.items()
            ],
        )

    async def recall(self, calls: Sequence[tuple[str, str]]) -> None:
        """Note that calls that have not ended, by device and id, are not wanted any more."""
        keys = self._store.keys
        for some in names.by_shard(keys.shards, calls, itemgetter(0)).values():
            await self._store.call("fleet_calls_recall", [keys.operator_call(mac, call) for mac, call in some], [])

    async def states(self, calls: Sequence[tuple[str, str]]) -> list[tuple[CallState, str] | None]:
        """Return state and text of each call, by device and id; None where Redis does not know it."""
        pipe = self._store.client.pipeline(transaction=False)
        for mac, call in calls:
            pipe.hmget(self._store.keys.operator_call(mac, call), ["st", "out", "text"])
        found = await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute())) if calls else []
        return [None if st is None else (out if st == "ended" else st, text or "") for st, out, text in found]

    async def keys(self, macs: Sequence[str]) -> Mapping[str, str]:
        """Return the id of the key with which each device is connected, of those whose broker reported it."""
        keys, pipe = self._store.keys, self._store.client.pipeline(transaction=False)
        for mac in macs:
            pipe.hmget(keys.device(mac), ["cu", "cep", "ep"])
        found = await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute())) if macs else []
        users = {mac: parse_username(user or "") for mac, (user, at, now) in zip(macs, found, strict=True) if at == now}
        return {mac: user.key_id for mac, user in users.items() if user is not None}
