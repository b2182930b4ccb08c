"""What a device hears of a long answer over a network that loses packets: api, worker and edge are real processes."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.steering.script import answer, long_text
from fleet.workbench.conformance.steering.server import Steering
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.network.faults import Faults
from fleet.workbench.sim.profiles.profile import find_profile
from fleet.workbench.sim.records.report import Report
from tests.support.ports import LOOPBACK
from tests.support.process import accepts
from tests.support.role_site import role_site
from tests.support.until import until
from tests.support.waking import wake_up

pytestmark = pytest.mark.gapless

SECONDS = 17.6
SENTENCES = 4
DEVICES = 6
MOST_GAPS = DEVICES
"""Without making up for losses a device hears about ten."""


@pytest.fixture
async def steering() -> AsyncIterator[Steering]:
    async with Steering(LOOPBACK, 0) as models:
        yield models


async def test_long_answer_has_hardly_a_gap_though_one_packet_in_twenty_is_lost(
    tmp_path: Path, steering: Steering
) -> None:
    with role_site(tmp_path, steering.url) as site:
        site.api()
        site.worker()
        edge = site.edge(FLEET_LANGUAGE="en")
        await asyncio.to_thread(until, lambda: site.edges() == 1 and accepts(site.http_port))
        await asyncio.to_thread(site.until_spread, 16)
        async with asyncio.TaskGroup() as group:
            heard = [group.create_task(listen(site.ota, steering, seed)) for seed in range(DEVICES)]
        gaps = [task.result().counters.get("gaps", 0) for task in heard]
        assert sum(gaps) <= MOST_GAPS, gaps
        assert edge.count("first packet sent") == DEVICES


async def listen(ota: str, steering: Steering, seed: int) -> Report:
    """Ask once and hear the whole answer."""
    faults = Faults(loss=0.05)
    device = SimDevice(find_profile("P1"), ota_url=ota, mac=f"02:00:00:00:01:{seed:02x}", seed=seed, faults=faults)
    async with device.running(240):
        await wake_up(device)
        mark = steering.free_mark()
        scene = answer(mark, long_text(mark, SENTENCES), transcript="please go on")
        steering.add(replace(scene, reply_seconds=SECONDS))
        turn = await device.say(voice.say(mark, 2.0), 240)
    assert turn.outcome == "answered"
    assert device.report.violations == []
    return device.report
