"""The benchmark of single turns runs a real gateway; how fast it is is never asserted."""

import asyncio

from fleet.workbench.bench.turn import TurnExperiment

LIMIT = 240


async def test_a_gateway_answers_one_and_several_at_once() -> None:
    async with asyncio.timeout(LIMIT):
        one, three = await TurnExperiment(at_once=[1, 3], rate=10, seconds=0.3, repeats=1).measure(lambda what: None)
    assert (one.at_once, three.at_once) == (1, 3)
    for case in (one, three):
        assert case.turns >= case.at_once
        assert case.lost == 0
        assert case.direct_ms.p50 > 0
        assert 0 < case.first_ms.p50 <= case.first_ms.p99
        assert case.last_ms.p50 > 0
        assert case.us["gateway"].median > 0
