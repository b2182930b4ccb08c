"""The short run of jobs in whose midst control, workers and Redis are killed."""

from pathlib import Path

import pytest
from rich.console import Console

from tests.chaos.jobs_killed import hold
from tests.chaos.run import Options


@pytest.mark.parametrize("devices", [24, pytest.param(40, marks=pytest.mark.slow)])
async def test_jobs_lose_nothing_and_ask_nobody_twice_while_everything_is_killed(tmp_path: Path, devices: int) -> None:
    killed = ["control", "worker 1", "redis", *(["worker 2"] if devices == 40 else [])]
    rounds = await hold(Options(out=tmp_path, seed=4, devices=devices), len(killed), Console(quiet=True))
    assert [one.killed for one in rounds] == killed
    assert [fault for one in rounds for fault in one.faults] == []
    assert all(one.verdict.told >= one.job.counts.ok for one in rounds)


@pytest.mark.slow
async def test_jobs_lose_nothing_and_ask_nobody_twice_while_redis_fails_over(tmp_path: Path) -> None:
    rounds = await hold(Options(out=tmp_path, seed=4, devices=60), 4, Console(quiet=True), sentinel=True)
    assert [fault for one in rounds for fault in one.faults] == []
