"""The short chaos run of `scripts/test`: some turns, one of each kind of process killed, and the longer ones."""

from pathlib import Path

import pytest

from tests.chaos.report import describe
from tests.chaos.run import Options, run

pytestmark = pytest.mark.scripted

SEED = 4
LIMIT = 120.0
KILLS_OF_EACH = 17
"""A seed whose first four faults kill an edge, Redis, a worker at a line of its log, and the broker."""


async def test_nothing_is_lost_or_done_twice_while_one_of_each_is_killed(tmp_path: Path) -> None:
    options = Options(out=tmp_path, seed=KILLS_OF_EACH, turns=20, faults=4, devices=4, limit=LIMIT, last=2 * LIMIT)
    outcome = await run(options)
    assert not outcome.violations, describe(outcome)
    assert {(fault.target, fault.how) for fault in outcome.plan} == {
        *(("edge", "kill"), ("redis", "kill"), ("worker", "kill"), ("broker", "kill"))
    }
    assert len(outcome.faults) == 4
    assert len(outcome.turns) >= 20
    assert len(outcome.executions) >= 14


@pytest.mark.slow
async def test_nothing_is_lost_or_done_twice_while_everything_is_killed(tmp_path: Path) -> None:
    outcome = await run(Options(out=tmp_path, seed=SEED, turns=40, faults=8, devices=6, limit=LIMIT))
    assert not outcome.violations, describe(outcome)
    assert len(outcome.faults) == 8
    assert len(outcome.turns) >= 40
    assert len(outcome.executions) >= 30


@pytest.mark.slow
async def test_a_thousand_turns_survive_a_hundred_faults(tmp_path: Path) -> None:
    outcome = await run(Options(out=tmp_path, seed=SEED, turns=1000, faults=100, devices=12))
    assert not outcome.violations, describe(outcome)
    assert len(outcome.faults) == 100
    assert len(outcome.turns) >= 1000
    assert len(outcome.executions) >= 900
    # One of ten; of the shorter runs none need be, as chance and timing decide.
    assert outcome.withdrawn >= 50
