"""The benchmark of many rows runs a real control; how fast it is is never asserted."""

import asyncio

from tests.benchmarks.job_rows import JobRowsExperiment

LIMIT = 240


async def test_a_job_over_rows_reaches_all_that_are_online() -> None:
    experiment = JobRowsExperiment(seconds=float(LIMIT), repeats=1, devices=200, rate=1_000)
    async with asyncio.timeout(LIMIT):
        found = await experiment.measure(lambda _: None)
    assert found.failed == 0
    assert 100 < found.ended < 200, "about seven of ten are online"
    assert found.cpu_us["control"] > 0
