"""Forging without the key against a real edge over UDP, while a device holds conversations.

Ten minutes of each kind of forging in virtual time: test_audio_forging.py.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from random import Random
from statistics import mean

import pytest
import pytest_asyncio

from fleet.workbench.conformance.context import CheckContext, Setup
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.steering.server import Steering
from fleet.workbench.conformance.talk import ask, heard, length, talking, understood, until_speaking
from fleet.workbench.sim.profiles.profile import find_profile
from fleet.workbench.sim.scripted.device import ScriptedDevice
from tests.support.audio_air import FORGERIES, Forge, Sight
from tests.support.ports import LOOPBACK, free_port
from tests.support.process import accepts
from tests.support.role_site import role_site
from tests.support.scraped import ready, scrape
from tests.support.until import until

# One site serves all tests, so all run in its loop.
pytestmark = [pytest.mark.gapless, pytest.mark.asyncio(loop_scope="module")]

RATE = 500.0
"""Forged packets a second."""
TICK = 0.01
SAID = 1.2
"""Seconds of each question."""
WHOLE, MOST = 0.85, 0.6
"""Parts of it that recognition must have been given on average: when nothing is lost (marks are misread by 0.15 s), and
when one packet in nine is (what is left of a mark beside it is misread too)."""
DEAF = 1.0
"""Longest time in seconds for which a device may not be heard."""


@dataclass(frozen=True)
class Site:
    """Api, worker and edge as processes, and the scripted models."""

    context: CheckContext
    metrics: int
    before: Mapping[str, float] = field(default_factory=dict)
    """What was dropped before this test."""

    def dropped(self, reason: str) -> float:
        """Return how many datagrams this test saw dropped."""
        return self.counted(reason) - self.before.get(reason, 0)

    def counted(self, reason: str) -> float:
        return scrape(self.metrics).value("fleet_edge_drops_total", reason=reason)


@pytest.fixture
def site(besieged: Site) -> Site:
    return replace(besieged, before={reason: besieged.counted(reason) for reason in ("not_audio", "rate")})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def besieged(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    metrics = free_port()
    async with Steering(LOOPBACK, 0) as steering:
        with role_site(tmp_path_factory.mktemp("siege"), steering.url) as roles:
            roles.api()
            roles.worker()
            roles.edge(FLEET_LANGUAGE="en", FLEET_METRICS_PORT=str(metrics), FLEET_METRICS_HOST=LOOPBACK)
            await asyncio.to_thread(roles.until_spread, 16)
            await asyncio.to_thread(until, lambda: ready(metrics) and accepts(roles.http_port))
            yield Site(CheckContext(Setup(roles.ota, steering=steering), find_profile("P1")), metrics)


@dataclass
class Forger:
    """Somebody on the network who sees what a device sends and has no key.

    Args:
        device: The device.
    """

    device: ScriptedDevice
    random: Random = field(default_factory=lambda: Random(1))
    seen: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.from_home = self.device.audio.send_raw
        self.stranger = self.device.audio.stranger()
        self.device.audio.send_raw = self._see  # type: ignore[method-assign]

    def _see(self, datagram: bytes) -> None:
        self.seen = [*self.seen, datagram][-50:]
        self.from_home(datagram)

    def from_elsewhere(self, datagram: bytes) -> None:
        self.stranger.send(datagram, self.device.audio.server)

    def sight(self) -> Sight:
        return Sight(self.device.audio.sent, self.seen, int.from_bytes(self.seen[-1][4:8], "big"))

    @asynccontextmanager
    async def forging(self, forge: Forge, send: Callable[[bytes], None]) -> AsyncIterator[None]:
        """Forge until the block ends."""
        running = asyncio.get_running_loop().create_task(self._run(forge, send))
        try:
            yield
        finally:
            running.cancel()
            await asyncio.wait([running])
            assert running.cancelled(), running.exception()

    async def _run(self, forge: Forge, send: Callable[[bytes], None]) -> None:
        clock = asyncio.get_running_loop().time
        began, sent = clock(), 0
        while True:
            # However late this is, no more than a tenth of a second's packets come at once.
            due = min(int((clock() - began) * RATE) - sent, int(RATE / 10))
            for _ in range(due):
                send(forge(self.random, self.sight()))
            sent = int((clock() - began) * RATE)
            await asyncio.sleep(TICK)

    def got(self) -> int:
        """Return how many datagrams went to the forger."""
        return sum(one.port == self.stranger.port for one in self.device.audio.datagrams)


async def converse(context: CheckContext, device: ScriptedDevice, least: float) -> None:
    """Ask one question, and get the whole answer to it."""
    # The codec garbles one mark of thirty: another one is said then. What forging does comes again.
    if await question(context, device) < least * SAID:
        assert await question(context, device) >= least * SAID


async def question(context: CheckContext, device: ScriptedDevice) -> float:
    """Ask one question, and get the whole answer to it; return for how many seconds recognition was given it."""
    with context.scene(reply_seconds=1.0) as scene:
        understood(await ask(device, voice.say(scene.mark, SAID)), scene)
        got = length(heard(context, scene), scene.mark)
        assert got >= SAID - DEAF
        return got


async def test_who_saw_one_datagram_does_not_get_the_answer(site: Site) -> None:
    context = site.context
    with context.scene(reply_seconds=10.0) as scene:
        async with talking(context) as device:
            forger = Forger(device)
            await until_speaking(device, scene, 0.3)
            # Its microphone is off: only the forger sends.
            device.microphone.on = False
            async with forger.forging(FORGERIES["next few numbers"], forger.from_elsewhere):
                await device.messages.expect("tts", "stop", seconds=240, after=device.clock())
            assert forger.got() == 0
            assert site.dropped("not_audio") > 100


async def test_who_saw_one_datagram_does_not_deafen_the_device(site: Site) -> None:
    context = site.context
    async with talking(context) as device:
        forger = Forger(device)
        await converse(context, device, WHOLE)
        with context.scene(reply_seconds=10.0) as scene:
            await until_speaking(device, scene, 0.3)
            async with forger.forging(lambda random, sight: sight.ahead(random, 2999), forger.from_elsewhere):
                await device.messages.expect("tts", "stop", seconds=240, after=device.clock())
        await converse(context, device, WHOLE)


async def test_small_datagrams_do_not_starve_the_uplink(site: Site) -> None:
    context = site.context
    async with talking(context) as device:
        forger = Forger(device)
        await converse(context, device, WHOLE)
        async with forger.forging(lambda random, sight: sight.ahead(random, 1, 4), forger.from_elsewhere):
            for _ in range(2):
                await converse(context, device, WHOLE)
        assert site.dropped("rate") == 0


SECONDS = [pytest.param(10.0, id="short"), pytest.param(600.0, id="ten minutes", marks=pytest.mark.slow)]


@pytest.mark.parametrize("seconds", SECONDS)
async def test_forging_from_another_address_costs_nothing(site: Site, seconds: float) -> None:
    await withstand(site, seconds, lambda forger: forger.from_elsewhere, WHOLE)


@pytest.mark.parametrize("seconds", SECONDS)
async def test_forging_in_the_devices_name_costs_one_packet_in_nine(site: Site, seconds: float) -> None:
    await withstand(site, seconds, lambda forger: forger.from_home, MOST)


async def withstand(
    site: Site, seconds: float, source: Callable[[Forger], Callable[[bytes], None]], least: float
) -> None:
    """Let a device converse for so long while everything that can be forged is, then go on from another port."""
    async with talking(site.context) as device:
        clock = asyncio.get_running_loop().time
        forger, ends = Forger(device), clock() + seconds
        await converse(site.context, device, WHOLE)
        async with forger.forging(FORGERIES["all of it"], source(forger)):
            got = [await question(site.context, device)]
            while clock() < ends:
                got.append(await question(site.context, device))
            assert mean(got) >= least * SAID
            own = device.audio.port
            assert {one.port for one in device.audio.datagrams} == {own}
            new = device.audio.rebind()
            await question(site.context, device)
            count = len(device.audio.datagrams)
            await question(site.context, device)
        assert forger.got() == 0
        assert {one.port for one in device.audio.datagrams[count:]} == {new}
        assert site.dropped("not_audio") > 0
