from redis.exceptions import ConnectionError as RedisConnectionError

from fleet.adapters.redis.sessions.calls import CallBegun, CallKnown
from fleet.ground.tasks import running
from fleet.roles.worker.calls.expirer import CallExpirer
from tests.support.virtual_time import elapse
from tests.support.worker_stage import MAC, WorkerStage


async def test_a_call_whose_worker_died_ends_as_unknown_also_after_redis_was_away(stage: WorkerStage) -> None:
    calls = stage.resources.calls
    begun = await calls.begin(MAC, "t1:c1", 3)
    assert isinstance(begun, CallBegun)
    async with running("expirer", CallExpirer(calls, lambda: [0]).run):
        await elapse(2)
        assert await calls.begin(MAC, "t1:c1", 3) == CallKnown(begun.id, "pending", "")
        stage.connection.fault = RedisConnectionError("away")
        await elapse(5)
        stage.connection.fault = None
        await elapse(10)
        assert await calls.begin(MAC, "t1:c1", 3) == CallKnown(begun.id, "unknown", "")
