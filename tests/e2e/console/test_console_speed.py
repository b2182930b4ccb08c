"""The console over a million devices: its first paint, a scroll through its list, and 1,000 events a second; slow.

Other processes only add to what is found, even to the CPU of a task. So the least of a few looks counts, and tasks are
judged by their CPU and not by the clock.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.benchmarks.console import MARKS, ConsoleExperiment
from tests.support.every import for_every

pytestmark = pytest.mark.slow
EXPERIMENT = ConsoleExperiment(seconds=6.0, repeats=1, devices=1_000_000, rows=2_000, rate=1_000)
MOST_LOOKS = 3
MARKED = {what: most for what, (most, _) in MARKS.items() if most is not None and "by the clock" not in what}
LEAST_PASSED = EXPERIMENT.rows * EXPERIMENT.seconds / 10
"""Rows that a scroll passes even where frames are rare."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, float]:
    """Give the least of each figure; look again only while one of them is over its mark."""
    folder = tmp_path_factory.mktemp("speed")
    return asyncio.run(look(folder))


async def look(folder: Path) -> Mapping[str, float]:
    least: dict[str, float] = {}
    async with EXPERIMENT.serve(folder) as site:
        for _ in range(MOST_LOOKS):
            for one in await asyncio.to_thread(EXPERIMENT.look, site):
                least[one.what] = min(one.value, least.get(one.what, one.value))
            if all(least[what] <= most for what, most in MARKED.items()):
                break
    return least


@for_every("what", MARKED)
def test_a_figure_is_below_its_mark(what: str, found: Mapping[str, float]) -> None:
    assert found[what] <= MARKED[what], found


def test_the_scroll_passed_rows_and_events_came(found: Mapping[str, float]) -> None:
    assert found["scroll: rows passed"] > LEAST_PASSED
    assert found["events: share of the main thread"] > 0
