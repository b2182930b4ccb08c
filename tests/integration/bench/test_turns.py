"""The benchmark of turns runs with one and with two real workers; how fast they are is never asserted."""

import asyncio

from fleet.workbench.bench.turns import TurnsExperiment

LIMIT = 240


async def test_one_worker_and_two_answer_turns() -> None:
    async with asyncio.timeout(LIMIT):
        one, two = await TurnsExperiment(workers=[1, 2], users=4, calls=1, seconds=0.3, repeats=1).measure(
            lambda what: None
        )
    assert (one.workers, two.workers) == (1, 2)
    for case in (one, two):
        assert case.turns.median > 0
        assert case.lost == 0
        assert case.cores["worker"] > 0
