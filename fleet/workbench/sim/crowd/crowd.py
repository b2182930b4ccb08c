"""Many devices in one process: they boot, connect, lose their connections, and come back."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from fleet.workbench.sim.bootstrap.ota import read_mqtt
from fleet.workbench.sim.crowd.kinds import BOARDS, NEWER, kind_of
from fleet.workbench.sim.crowd.ledger import Ledger
from fleet.workbench.sim.crowd.member import Member
from fleet.workbench.sim.crowd.place import Place
from fleet.workbench.sim.crowd.shares import Shares, chance
from fleet.workbench.sim.crowd.tool_calls import ToolCalls
from fleet.workbench.sim.crowd.upgrades import Upgrades
from fleet.workbench.sim.crowd.web import Web
from fleet.workbench.sim.messages.message import JsonObject, member, text
from fleet.workbench.sim.profiles.timing import Timing

_TIMING: Final = Timing()
_TICK, _LOOK_SECONDS, _ASKED_SECONDS = 0.02, 0.2, 30.0
_RETRIES = 10


@dataclass(frozen=True, slots=True)
class CrowdPlan:
    """A crowd, or a part of one.

    `first` is the number of its first device; numbers give MACs and addresses. `rate`: devices that boot in a second.
    `at_once`: devices that boot at the same time, at most, from their request for bootstrap until the server asks for
    their tools, which it does while they boot, or has not for `_ASKED_SECONDS`.
    `broker`: HOST:PORT to which they connect; by default that which bootstrap names.
    """

    ota_url: str
    count: int
    first: int = 0
    rate: float = 200.0
    shares: Shares = field(default_factory=Shares)
    seed: int = 1
    at_once: int = 1_000_000
    broker: str = ""


class Crowd:
    """The devices; see `running`.

    Args:
        plan: Of them.
        spawn: Starts a task.
    """

    def __init__(self, plan: CrowdPlan, spawn: Callable[[Coroutine[Any, Any, None]], object]) -> None:
        self.plan, self.ledger = plan, Ledger()
        self.members: dict[int, Member] = {}
        self._spawn, self._web = spawn, Web(Place.of(plan.ota_url))
        self._stopping = False
        self._upgrades = Upgrades(self._web, plan.shares, plan.seed, self.ledger)
        chances = random.Random(plan.seed)
        self.calls = ToolCalls(plan.shares, plan.seed, self.ledger, chances, self.restart, self._upgrades.install)

    async def boot(self) -> None:
        """Switch all devices on, at the rate of the plan; return when all are connected that do not stay offline."""
        booting, clock = dict[Member, float](), asyncio.get_running_loop().time
        async for number in paced(range(self.plan.first, self.plan.first + self.plan.count), self.plan.rate):
            newer = chance(self.plan.seed, number, "newer") < self.plan.shares.newer
            profile = NEWER if newer else BOARDS[number % len(BOARDS)]
            device = self.members[number] = Member(number, mac_of(number), profile, kind_of(profile), self)
            booting[device] = clock()
            self._spawn(self._boot(device))
            while len(booting) >= self.plan.at_once:
                await asyncio.sleep(_TICK)
                late = clock() - _ASKED_SECONDS
                booting = {
                    one: at for one, at in booting.items() if not (one.listed or _is_in(self.plan, one, at < late))
                }
        devices = self.members.values()
        while not all(_is_in(self.plan, one, True) for one in devices):  # noqa: ASYNC110 - they have no event
            await asyncio.sleep(_LOOK_SECONDS)

    async def ping(self) -> None:
        """Keep all connections, for ever."""
        clock = asyncio.get_running_loop().time
        last = int(clock())
        while True:
            await asyncio.sleep(1.0)
            now = int(clock())
            for device in self.members.values():
                if device.up and device.access and is_due(last, now, device.number, device.access.keepalive // 2):
                    device.ping()
            last = now

    async def arrive(self, count: int, rate: float) -> None:
        """Let some of the devices connect that are offline."""
        waiting = [one for one in self.members.values() if not one.up and one.access is not None][:count]
        async for device in paced(waiting, rate):
            self._spawn(self._connect(device))

    def scatter(self, count: int) -> None:
        """Cut some connections; the devices come back as firmware does, ten seconds later."""
        for device in random.sample([one for one in self.members.values() if one.up], count):
            device.leave()

    def stop(self) -> None:
        """Switch all devices off."""
        self._stopping = True
        for device in self.members.values():
            device.leave()

    @property
    def online(self) -> int:
        """How many devices are connected."""
        return sum(device.up for device in self.members.values())

    def connected(self, device: Member) -> None:
        self.ledger.counts["connections"] += 1

    def lost(self, device: Member) -> None:
        if self._stopping or device.access is None:
            return
        self.ledger.counts["losses"] += 1
        asyncio.get_running_loop().call_later(_TIMING.reconnect, self._return, device)

    def asked(self, device: Member, request: JsonObject) -> None:
        device.listed = device.listed or text(request, "method") == "tools/list"
        answer = self.calls.receive(device, request)
        if answer is not None:
            self._spawn(answer)

    def ordered(self, device: Member, message: JsonObject) -> None:
        match text(message, "type"):
            case "system" if text(message, "command") == "reboot":
                self.restart(device)
            case "notify" if device.kind.profile.notify:
                self._spawn(self._web.notify(device, text(message, "audio_url") or "", self.ledger))
            case kind:
                self.ledger.counts[f"{kind} messages"] += 1
                if kind == "alert":
                    self.ledger.alerts[device.mac] += 1

    def restart(self, device: Member) -> None:
        """Switch a device off and on."""
        device.access = None
        device.leave()
        self.ledger.counts["restarts"] += 1
        asyncio.get_running_loop().call_later(_TIMING.reboot, lambda: self._spawn(self._boot(device)))

    async def _boot(self, device: Member) -> None:
        pause, waiting = _TIMING.ota_retry, Counter[str]()
        for _ in range(_RETRIES):
            answer = await self._web.bootstrap(device.number, device.mac, device.kind.profile)
            access = read_mqtt(member(answer, "mqtt")) if answer else None
            if answer is None or access is None:
                if answer is None or not member(answer, "activation"):
                    self.ledger.counts["bootstraps refused"] += 1
                elif not waiting:
                    waiting["wait to be accepted"] = 1
                    self.ledger.counts += waiting
                await asyncio.sleep(pause)
                pause *= 2
                continue
            self.ledger.counts -= waiting
            waiting.clear()
            self.ledger.counts["boots"] += 1
            if await self._upgrades.take(device, member(answer, "firmware")):
                await asyncio.sleep(_TIMING.reboot)
                continue
            device.access = replace(access, endpoint=self.plan.broker or access.endpoint)
            if not _is_offline(self.plan, device):
                await self._connect(device)
            return

    async def _connect(self, device: Member) -> None:
        if device.up or device.access is None or self._stopping:
            return
        try:
            await device.connect(device.access, self._web.source(device.number))
        except OSError as error:
            self.ledger.counts[f"broker: {error.strerror or type(error).__name__}"] += 1
            asyncio.get_running_loop().call_later(_TIMING.reconnect, self._return, device)

    def _return(self, device: Member) -> None:
        if not self._stopping:
            self._spawn(self._connect(device))


@asynccontextmanager
async def running(plan: CrowdPlan) -> AsyncIterator[Crowd]:
    """Give a crowd that is still switched off; it is switched off with the block."""
    async with asyncio.TaskGroup() as group:
        alive: set[asyncio.Task[None]] = set()

        def spawn(work: Coroutine[Any, Any, None]) -> None:
            task = group.create_task(work, name="crowd")
            alive.add(task)
            task.add_done_callback(alive.discard)

        crowd = Crowd(plan, spawn)
        spawn(crowd.ping())
        try:
            yield crowd
        finally:
            crowd.stop()
            for task in list(alive):
                task.cancel()


async def paced(things: Any, rate: float) -> AsyncIterator[Any]:
    """Yield things, so many a second."""
    clock = asyncio.get_running_loop().time
    begun = clock()
    for done, one in enumerate(things):
        early = done / rate - (clock() - begun)
        if early > 0:
            await asyncio.sleep(max(early, _TICK))
        yield one


def _is_in(plan: CrowdPlan, device: Member, connected: bool) -> bool:
    """Whether a device has booted: is to stay offline, or, with `connected`, is connected."""
    return device.access is not None and (_is_offline(plan, device) or (connected and device.up))


def _is_offline(plan: CrowdPlan, device: Member) -> bool:
    return chance(plan.seed, device.number, "offline") < plan.shares.offline


def is_due(last: int, now: int, number: int, pause: int) -> bool:
    """Whether the turn of a device came after `last`, until `now`; each has one every `pause` seconds."""
    step = max(1, pause)
    return (now + number) // step > (last + number) // step


def mac_of(number: int) -> str:
    """Return the MAC of a device."""
    return "02:c0:" + ":".join(f"{number >> shift & 255:02x}" for shift in (24, 16, 8, 0))
