"""A worker that hears every device: what is said in a shard that nobody has subscribed to yet is lost."""

import asyncio

from fleet.roles.worker.app import Worker

LIMIT = 240.0


async def until_whole(worker: Worker, shards: int) -> None:
    """Wait until the only worker owns all shards and receives their messages; it is ready with the first one."""
    async with asyncio.timeout(LIMIT):
        while len(worker._shards.owned) < shards or not worker.ready:
            await asyncio.sleep(0.01)
