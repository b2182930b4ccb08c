"""What a device shows after its edge, or the whole server, died in the middle of an answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from fleet.core.text.phrases import phrase
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.steering.script import answer, long_text
from fleet.workbench.conformance.steering.server import Steering
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.profiles.profile import Profile, find_profile
from fleet.workbench.sim.profiles.timing import Timing
from fleet.workbench.sim.runtime.state import State
from tests.support.ports import LOOPBACK
from tests.support.process import accepts
from tests.support.role_process import RoleProcess
from tests.support.role_site import RoleSite, role_site
from tests.support.until import until

SORRY = phrase("interrupted", "en")
LIMIT = 240.0
pytestmark = pytest.mark.scripted
QUICK = replace(find_profile("P1"), timing=Timing(reconnect=1.0))
OLD = replace(find_profile("P6"), timing=Timing(reconnect=1.0))


@dataclass
class House:
    site: RoleSite
    steering: Steering
    worker: RoleProcess
    edge: RoleProcess

    async def ready(self) -> None:
        await asyncio.to_thread(self.site.until_spread, 16, seconds=LIMIT)
        await asyncio.to_thread(until, lambda: self.site.edges() >= 1 and accepts(self.site.http_port), LIMIT)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with Steering(LOOPBACK, 0) as steering:
        with role_site(tmp_path, steering.url, durable=True) as site:
            site.api()
            one = House(site, steering, site.worker(), site.edge(mortal=True, FLEET_LANGUAGE="en"))
            await one.ready()
            yield one


@asynccontextmanager
async def speaking(house: House, profile: Profile) -> AsyncIterator[SimDevice]:
    """Give a device in the middle of a long answer."""
    device = SimDevice(profile, ota_url=house.site.ota, mac="02:00:00:00:00:77")
    mark = house.steering.free_mark()
    scene = answer(mark, long_text(mark, 20), transcript="please go on")
    house.steering.add(replace(scene, reply_seconds=40.0))
    async with asyncio.timeout(LIMIT), device.running(LIMIT), asyncio.TaskGroup() as group:
        await wake(device)
        said = group.create_task(device.say(voice.say(mark, 1.2), LIMIT))
        assert await device.until(240, lambda: device.speaking and bool(device.screen.text))
        yield device
        said.cancel()


async def wake(device: SimDevice) -> None:
    """Say the wake word until the device listens: a worker that has just begun may not know its edge yet."""
    while not await device.wake(seconds=3.0):
        assert await device.until(LIMIT, lambda: device.state is State.IDLE)


async def until_settled(device: SimDevice) -> None:
    """Return when all that the device said before was handled: what it says last is answered."""
    line = device._power.boot.mqtt
    assert await line.publish('{"type":"listen","state":"start","mode":"auto","session_id":"last"}')
    assert await device.until(LIMIT, lambda: "last" in [str(one.detail["session"]) for one in ignored(device)])


def ignored(device: SimDevice) -> list:
    return device.journal.find("goodbye ignored")


async def shows_the_apology(device: SimDevice, session: str) -> None:
    """The device shows the apology and goes on to do so, and was sent one goodbye for this session."""
    assert await device.until(LIMIT, lambda: device.screen.text == SORRY)
    await until_settled(device)
    assert (device.screen.status, device.screen.text, device.screen.emotion) == ("Error", SORRY, "sad")
    goodbyes = [one for one in device.journal.find("goodbye") if one.detail["session"] == session]
    assert len(goodbyes) == 1
    assert ignored(device)[0].detail["session"] == "last"


@pytest.mark.parametrize("profile", [QUICK, OLD], ids=["2.4.2", "2.2.6"])
async def test_a_device_whose_edge_was_killed_shows_the_apology(house: House, profile: Profile) -> None:
    async with speaking(house, profile) as device:
        session = device.session
        await asyncio.to_thread(house.edge.kill)
        await shows_the_apology(device, session)


async def test_an_edge_that_ends_leaves_the_apology_on_the_screen(house: House) -> None:
    device = SimDevice(QUICK, ota_url=house.site.ota, mac="02:00:00:00:00:77")
    async with asyncio.timeout(LIMIT), device.running(LIMIT):
        await wake(device)
        session = device.session
        # No time to drain: the session is cut while its user may speak.
        house.edge.send(15)
        await shows_the_apology(device, session)


async def test_a_device_that_comes_back_to_a_restarted_server_shows_the_apology(house: House) -> None:
    slow = replace(QUICK, timing=Timing(reconnect=8.0))
    async with speaking(house, slow) as device:
        session = device.session
        await asyncio.to_thread(house.site.broker.kill)
        await asyncio.to_thread(house.edge.kill)
        await asyncio.to_thread(house.worker.kill)
        await asyncio.to_thread(house.site.broker.start)
        house.worker, house.edge = house.site.worker(), house.site.edge(mortal=True, FLEET_LANGUAGE="en")
        await shows_the_apology(device, session)


async def test_a_worker_that_takes_over_shows_what_the_one_before_could_not(house: House) -> None:
    async with speaking(house, QUICK) as device:
        session = device.session
        await asyncio.to_thread(house.edge.kill)
        assert await device.until(LIMIT, lambda: bool(device.journal.find("goodbye")))
        # A worker that dies between the goodbye and its note leaves both to the next one.
        await asyncio.to_thread(until, lambda: house.worker.count("session lost with its edge"), LIMIT)
        await asyncio.to_thread(house.worker.kill)
        house.worker = house.site.worker()
        await shows_the_apology(device, session)
