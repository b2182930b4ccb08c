from collections.abc import AsyncIterator

import pytest

from tests.support.worker_stage import WorkerStage, worker_stage


@pytest.fixture
async def stage() -> AsyncIterator[WorkerStage]:
    """A shard under a lease, with a Redis in memory and a device that is connected."""
    async with worker_stage() as one:
        await one.connect()
        yield one
