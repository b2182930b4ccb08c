"""Jobs in whose midst control, a worker, Redis and its primary are killed: once each, and 20 times each (slow)."""

from pathlib import Path

import pytest
from rich.console import Console

from tests.chaos.jobs_killed import Round, hold
from tests.chaos.run import Options

KINDS = ("control", "worker", "redis")
_ONCE_AND_OFTEN = pytest.mark.parametrize("repeat", [1, pytest.param(20, marks=pytest.mark.slow)])


@_ONCE_AND_OFTEN
async def test_jobs_lose_nothing_and_ask_nobody_twice_while_everything_is_killed(tmp_path: Path, repeat: int) -> None:
    rounds = await hold(Options(out=tmp_path, seed=4, devices=24), repeat, Console(quiet=True))
    assert [one.killed for one in rounds] == [*KINDS] * repeat
    _judge(rounds)


@_ONCE_AND_OFTEN
async def test_jobs_lose_nothing_and_ask_nobody_twice_while_redis_fails_over(tmp_path: Path, repeat: int) -> None:
    rounds = await hold(Options(out=tmp_path, seed=4, devices=24), repeat, Console(quiet=True), sentinel=True)
    assert len(rounds) == repeat
    _judge(rounds)


def _judge(rounds: list[Round]) -> None:
    assert [fault for one in rounds for fault in one.faults] == []
    assert all(one.verdict.told >= one.job.counts.ok for one in rounds)
