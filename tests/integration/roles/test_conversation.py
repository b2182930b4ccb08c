"""A spoken conversation through `fleet api`, `fleet worker` and `fleet edge`, each a process of its own."""

import asyncio
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.steering.script import answer, long_text
from fleet.workbench.conformance.steering.server import Steering
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.profiles.profile import find_profile
from fleet.workbench.sim.records.turns import Turn
from tests.integration.roles.test_edges import until_on
from tests.integration.worker.scripted import Device
from tests.support.ports import LOOPBACK
from tests.support.process import accepts
from tests.support.role_site import role_site
from tests.support.until import until
from tests.support.waking import broken_rules, wake_up

SENTENCES = 3
pytestmark = pytest.mark.scripted


@pytest.fixture
async def steering() -> AsyncIterator[Steering]:
    async with Steering(LOOPBACK, 0) as models:
        yield models


async def test_a_draining_edge_speaks_to_the_end_and_the_next_turn_is_anothers(
    tmp_path: Path, steering: Steering
) -> None:
    with role_site(tmp_path, steering.url) as site:
        site.api()
        site.worker()
        edges = [site.edge(FLEET_LANGUAGE="en"), site.edge(FLEET_LANGUAGE="en")]
        await asyncio.to_thread(site.until_spread, 16)
        await asyncio.to_thread(until, lambda: site.edges() == 2 and accepts(site.http_port))
        scout = await Device.connect(site.broker, site.keys, "02:00:00:00:00:78")
        await until_on(scout, edges[0])  # the worker has heard of it
        await until_on(scout, edges[1])
        await scout.close()
        device = SimDevice(find_profile("P1"), ota_url=site.ota, mac="02:00:00:00:00:77")
        async with device.running(240):
            await wake_up(device)
            async with asyncio.TaskGroup() as group:
                said = group.create_task(talk(device, steering))
                assert await device.until(240, lambda: device.speaking)
                [first] = [edge for edge in edges if edge.count("device address")]
                first.send(signal.SIGTERM)
            turn = said.result()
            assert turn.outcome == "answered"
            assert turn.reply.count("goes on talking") == SENTENCES
            assert await device.until(240, lambda: not device.session)
            assert await asyncio.to_thread(first.wait) == 0
            await wake_up(device)
            assert (await talk(device, steering)).outcome == "answered"
        assert broken_rules(device) == []


async def talk(device: SimDevice, steering: Steering) -> Turn:
    mark = steering.free_mark()
    scene = answer(mark, long_text(mark, SENTENCES), transcript="please go on")
    steering.add(replace(scene, reply_seconds=4.0))
    return await device.say(voice.say(mark, 1.2), 240)
