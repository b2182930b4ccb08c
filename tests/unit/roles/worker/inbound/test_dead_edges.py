import asyncio

import pytest

from fleet.adapters.redis.shards.edges import EdgeRecord
from fleet.core.rates import Rate
from fleet.ground.tasks import running
from fleet.roles.worker.calls.device_calls import DeviceCalls
from fleet.roles.worker.inbound.dead_edges import DeadEdgeReaper
from fleet.roles.worker.sessions.discovery import Discovery
from fleet.roles.worker.sessions.opener import SessionOpener
from fleet.roles.worker.turns.turns import WorkerTurns
from tests.support.virtual_time import elapse
from tests.support.worker_stage import EDGE, MAC, WorkerStage


async def watch(stage: WorkerStage, *live: str, seconds: int) -> None:
    """Let a reaper watch while these edges are alive."""
    calls = DeviceCalls(stage.resources.calls, stage.resources.reports, Rate(1, 5), stage.counts)
    turns = WorkerTurns(stage.resources, calls, Discovery(stage.resources, stage.counts), stage.counts)
    opener = SessionOpener(stage.resources, stage.directory, stage.counts)
    sessions, directory = stage.resources.sessions, stage.directory
    async with running("reaper", DeadEdgeReaper(sessions, directory, lambda: {0: stage.shard}, opener, turns).run):
        for _ in range(seconds):
            directory.update([EdgeRecord(edge, "h", 1, 0) for edge in live], asyncio.get_running_loop().time())
            await elapse(1)


async def test_the_sessions_of_a_dead_edge_end_with_a_goodbye_and_an_apology(stage: WorkerStage) -> None:
    await stage.open("s1", "edge-0")
    await watch(stage, EDGE, seconds=6)
    assert [message["type"] for message in stage.sent()] == ["tts", "goodbye", "alert"]
    assert await stage.resources.sessions.read(MAC) is None


async def test_a_session_of_a_living_edge_stays(stage: WorkerStage) -> None:
    await stage.open("s1")
    await watch(stage, EDGE, seconds=6)
    assert stage.sent() == [] and await stage.resources.sessions.read(MAC)


async def test_nothing_ends_before_the_list_of_edges_is_reliable(stage: WorkerStage) -> None:
    await stage.open("s1", "edge-0")
    await watch(stage, EDGE, seconds=1)
    assert stage.sent() == []


@pytest.mark.parametrize("edge", ["edge-0", EDGE], ids=["dead edge", "living edge"])
async def test_an_apology_that_a_dead_worker_left_is_shown(stage: WorkerStage, edge: str) -> None:
    record = await stage.open("s1", edge)
    await stage.resources.sessions.close(
        stage.shard.owner, MAC, record.id, "edge lost", goodbye_sent=True, apology="interrupted"
    )
    await watch(stage, EDGE, seconds=6)
    assert [message["type"] for message in stage.sent()] == ["alert"]
