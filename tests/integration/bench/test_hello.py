"""The benchmark of hellos runs against real servers; what a hello costs is never asserted."""

import asyncio

from fleet.workbench.bench.hello import HelloExperiment
from fleet.workbench.bench.testbed import PARTS

LIMIT = 240
CONNECTED, KNOWN = 6, 40


async def test_devices_say_hello_to_a_real_worker() -> None:
    done: list[str] = []
    async with asyncio.timeout(LIMIT):
        [case] = await HelloExperiment(devices=[KNOWN], connected=CONNECTED, rate=20, seconds=0.3, repeats=1).measure(
            done.append
        )
    assert (case.devices, case.connected) == (KNOWN, CONNECTED)
    assert case.connect.count == CONNECTED // 2
    assert case.hello.count > 0
    assert case.hello.lost == case.low.lost == 0
    assert case.hello.ms.p50 > 0
    assert case.idle.tools > 0
    assert set(case.hello.us) == set(case.goodbye_us) == set(case.at_rest) == set(PARTS)
    assert any("low load" in what for what in done)
