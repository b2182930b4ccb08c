"""The benchmark of bootstrap runs a real api; how fast it is is never asserted."""

import asyncio

import pytest

from fleet.workbench.bench.bootstrap import BootstrapExperiment

LIMIT = 240
DEVICES, RATE, SECONDS = 20, 40, 0.5


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
async def test_known_devices_boot_at_a_real_api(closed: bool) -> None:
    done: list[str] = []
    async with asyncio.timeout(LIMIT):
        [case] = await BootstrapExperiment(
            rates=[RATE], devices=DEVICES, closed=closed, seconds=SECONDS, repeats=2
        ).measure(done.append)
    assert case.asked == RATE
    assert case.answers == 2 * RATE * SECONDS
    assert case.refused == {}
    assert case.rate > 0
    assert 0 < case.ms.p50 <= case.ms.p99 <= case.ms.most
    assert case.us["api"].median > 0
    assert any("at rest" in what for what in done)
