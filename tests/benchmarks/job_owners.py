"""`python -m tests.benchmarks.job_owners URL`: own all shards, and end each call of a job at once, with no device."""

import asyncio
import sys
from contextlib import AsyncExitStack

from fleet.adapters.redis.shards.leases import Leases
from fleet.adapters.redis.shards.operator_calls import OperatorCalls, QueuedCall
from fleet.adapters.redis.shards.owner import Owner
from tests.support.redis_store import SHARDS, opened

_LEASE_SECONDS = 3600.0
_ANSWER = "true"


async def own(url: str) -> None:
    """Answer until cancelled."""
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(opened(url))
        leases, queues = Leases(store, "stub", _LEASE_SECONDS), OperatorCalls(store)
        owners: dict[int, Owner] = {}
        for shard in range(SHARDS):
            owner = await leases.take(shard)
            assert owner is not None, "another worker has the shard"
            owners[shard] = owner
        last = dict.fromkeys(owners, "0")
        while True:
            entries = await queues.read(last)
            await asyncio.gather(*(_end(queues, owners[entry.shard], entry) for entry in entries))
            last |= {entry.shard: entry.id for entry in entries}


async def _end(queues: OperatorCalls, owner: Owner, entry: QueuedCall) -> None:
    assert entry.call is not None
    await queues.end(owner, entry.call, "ok", _ANSWER, entry.id)


if __name__ == "__main__":
    asyncio.run(own(sys.argv[1]))
