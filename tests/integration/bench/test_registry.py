"""The benchmark of the registry runs a real control with either database; how fast it is is never asserted."""

import asyncio
from collections.abc import Sequence

import pytest

from tests.benchmarks.registry import ENGINES, MARKS_MS, Engine, RegistryExperiment

LIMIT = 240


@pytest.mark.parametrize("engines", [ENGINES[:1], pytest.param(ENGINES, marks=pytest.mark.slow)], ids=len)
async def test_searches_over_http_are_measured(engines: Sequence[Engine]) -> None:
    experiment = RegistryExperiment(seconds=0.0, repeats=1, devices=300, engines=engines, requests=6)
    async with asyncio.timeout(LIMIT):
        found = await experiment.measure(lambda _: None)
    assert [(one.engine, one.kind) for one in found] == [(engine, kind) for engine in engines for kind in MARKS_MS]
    for one in found:
        assert one.requests >= 6 and 0 < one.ms.p50 <= one.ms.p99 <= one.ms.most and one.cpu_ms > 0
