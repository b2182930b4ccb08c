"""A load of some minutes for the dashboard: people who talk to devices, a bit of every trouble, restarts of workers."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from fleet.ground.errors import FleetError
from fleet.workbench.conformance.context import CheckContext, Setup
from fleet.workbench.conformance.steering.server import Steering
from fleet.workbench.conformance.verdict import Failed
from fleet.workbench.sim.profiles.profile import find_profile
from tests.chaos.device import Device
from tests.chaos.house import House
from tests.chaos.journal import Journal
from tests.chaos.person import Person
from tests.support import load_people
from tests.support.load_site import LoadSite

LIMIT = 60.0
"""Seconds after which a person gives a turn up."""
RECONNECT = 2.0
_PACES = (0.0, 0.02, 0.05, 0.1)
"""Seconds between the words of the model: some are quick."""
_TROUBLE_SECONDS = 12.0


class Load:
    """Everybody who uses a site.

    Args:
        site: What they use; it is ready.
        models: What the site's models say.
        folder: For the journal.
        seed: Of all dice.
    """

    def __init__(self, site: LoadSite, models: Steering, folder: Path, seed: int) -> None:
        self.errors: list[str] = []
        """What went otherwise than it should."""
        self.until = 0.0
        """When everybody began to leave."""
        self._site = site
        self._chance = random.Random(seed)
        clock = asyncio.get_running_loop().time
        self._house = House(models, Journal(folder / "devices.jsonl", clock), LIMIT)
        self._stage = CheckContext(Setup(site.site.ota, models), find_profile("P1"))

    @property
    def turns(self) -> int:
        """How many turns of people have ended."""
        return self._house.over

    async def run(self, devices: int, seconds: float) -> None:
        """Use the site for so long; both workers are restarted meanwhile, one after the other."""
        done = asyncio.Event()
        async with asyncio.TaskGroup() as group, self._people(devices) as people:
            for number, person in enumerate(people):
                # One after the other, as a morning begins.
                group.create_task(self._talk(person, done, number * seconds / 4 / devices))
            for work in (self._meet_trouble, self._ask_the_gateway, self._stay_at_the_front):
                group.create_task(work(done))
            for number, pause in ((1, 0.4), (2, 0.25)):
                await asyncio.sleep(seconds * pause)
                await asyncio.to_thread(self._site.restart_worker, number)
            await asyncio.sleep(seconds * 0.35)
            self.until = time.time()
            done.set()
        self.errors += [f"{one.rule}: {one.detail}" for one in self._house.violations]

    @asynccontextmanager
    async def _people(self, devices: int) -> AsyncIterator[list[Person]]:
        async with AsyncExitStack() as stack:
            found = []
            for number in range(devices):
                mac = f"02:da:5b:00:00:{number:02x}"
                dice = random.Random(self._chance.random())
                device = Device(mac, self._site.site.ota, self._house.journal, dice, RECONNECT)
                await stack.enter_async_context(device.running())
                found.append(Person(device, self._house, random.Random(self._chance.random())))
            yield found

    async def _talk(self, person: Person, done: asyncio.Event, after: float) -> None:
        await asyncio.sleep(after)
        while not done.is_set():
            await person.hold(more=self._chance.randrange(3), slow=self._chance.choice(_PACES))
            await person.rest()
            await asyncio.sleep(self._chance.uniform(0.5, 4.0))

    async def _meet_trouble(self, done: asyncio.Event) -> None:
        """Have one trouble after the other."""
        context, site, seed = self._stage, self._site, 0
        while not done.is_set():
            seed = (seed + 1) % 256
            for name, trouble in (
                ("apologies", load_people.hear_apologies(context)),
                ("bad air", load_people.talk_through_bad_air(site, context, seed)),
                ("refused", load_people.be_refused(context)),
                ("junk", load_people.send_junk(site, context)),
                ("the api", load_people.visit_the_api(site)),
                ("unheard", load_people.be_unheard(site, context)),
            ):
                await self._try(name, trouble)
            await _pause(done, self._chance.uniform(0, _TROUBLE_SECONDS))

    async def _ask_the_gateway(self, done: asyncio.Event) -> None:
        await self._visit(
            "the gateway", lambda leave: load_people.use_the_gateway(self._site, self._stage, leave), done
        )

    async def _stay_at_the_front(self, done: asyncio.Event) -> None:
        await self._visit("the front", lambda leave: load_people.pass_the_front(self._site, leave), done)

    async def _visit(self, name: str, visit: Callable[[asyncio.Event], Awaitable[None]], done: asyncio.Event) -> None:
        """Come, stay for a while, leave, and come again."""
        while not done.is_set():
            leave = asyncio.Event()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._try(name, visit(leave)))
                await _pause(done, self._chance.uniform(8, 25))
                leave.set()

    async def _try(self, name: str, work: Awaitable[None]) -> None:
        try:
            await work
        except (AssertionError, FleetError, Failed, pytest.fail.Exception) as error:
            self.errors.append(f"{name}: {error!r}")


async def _pause(done: asyncio.Event, seconds: float) -> None:
    """Wait so long, but not beyond the end."""
    try:
        async with asyncio.timeout(seconds):
            await done.wait()
    except TimeoutError:
        return
