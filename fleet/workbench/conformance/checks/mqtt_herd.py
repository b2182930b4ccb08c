"""Group M, continued: a whole site's devices that come back at once."""

import asyncio
import random
import resource
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import cache

import httpx2

from fleet.workbench.conformance import clock
from fleet.workbench.conformance.checks.mqtt import GROUP
from fleet.workbench.conformance.probe import bootstrap
from fleet.workbench.conformance.probe.line import Line
from fleet.workbench.conformance.stage import Stage, fresh_mac
from fleet.workbench.conformance.verdict import Failed, NotApplicable, require, span
from fleet.workbench.sim.bootstrap.ota import MqttAccess, read_mqtt
from fleet.workbench.sim.messages import message, outbound
from fleet.workbench.sim.messages.message import member
from fleet.workbench.sim.network.https import web
from fleet.workbench.sim.records.change_signal import ChangeSignal

_DEVICES = 2000
_WINDOW = 10.0
_GREETED = 5
_SPARE_FILES = 200
_AT_ONCE = 16
"""Requests to bootstrap side by side."""


@GROUP.check(
    "M11", "2000 devices that connect within ten seconds are all accepted", profiles="P1", alone=True, seconds=180
)
async def takes_a_herd(stage: Stage) -> str:
    with _room_for(_DEVICES + _SPARE_FILES):
        accesses = await _boot(stage)
        async with _herd(stage, accesses) as herd:
            await _gather(herd)
            faults = [one.fault for one in herd if one.fault]
            require(not faults, f"{len(faults)} of {_DEVICES} not accepted: {', '.join(sorted(set(faults))[:3])}")
            lost = sum(not one.line.up for one in herd)
            require(not lost, f"{lost} of {_DEVICES} connections were closed again")
            answered = max([await one.greet() for one in random.sample(herd, _GREETED)])
            return f"the slowest after {span(max(one.took for one in herd))}; then hellos within {span(answered)}"


class _Device:
    """One of many: it connects, and may say hello."""

    def __init__(self, stage: Stage, access: MqttAccess) -> None:
        self.line = Line(access, self._receive, stage.setup.tls)
        self.took = 0.0
        """Seconds from TCP's begin to CONNACK."""
        self.fault = ""
        self._hello = outbound.hello(stage.profile).encode()
        self._joined = asyncio.Event()
        self._greeted = False
        self._signal = ChangeSignal()

    async def join(self, delay: float) -> None:
        await asyncio.sleep(delay)
        begun = clock.now()
        try:
            code = await self.line.connect()
        except Failed as error:
            self.fault = str(error)
        else:
            self.fault = f"CONNACK {code}" if code else ""
            self._joined.set()
        self.took = clock.now() - begun

    async def read(self) -> None:
        """Read whatever comes from the moment of its connection on."""
        await self._joined.wait()
        await self.line.run()

    async def greet(self, seconds: float = 10.0) -> float:
        """Say hello and return after how long it was answered.

        Raises:
            Failed: It was not.
        """
        begun = clock.now()
        self.line.publish(self._hello)
        if not await self._signal.within(seconds, lambda: self._greeted):
            raise Failed(f"all were accepted, but then a hello was not answered within {seconds:g} s")
        return clock.now() - begun

    def _receive(self, _: str, payload: bytes) -> None:
        got = message.parse(payload)
        if got is not None and message.text(got, "type") == "hello":
            self._greeted = True
            self._signal.notify()


async def _gather(herd: Sequence[_Device]) -> None:
    async with asyncio.TaskGroup() as group:
        for number, device in enumerate(herd):
            group.create_task(device.join(random.uniform(0, _WINDOW)), name=f"herd {number}")


@asynccontextmanager
async def _herd(stage: Stage, accesses: Sequence[MqttAccess]) -> AsyncIterator[list[_Device]]:
    """Give devices that read whatever comes until the block ends."""
    herd = [_Device(stage, access) for access in accesses]
    async with asyncio.TaskGroup() as group:
        readers = [group.create_task(one.read(), name="herd reader") for one in herd]
        try:
            yield herd
        finally:
            for one, reader in zip(herd, readers, strict=True):
                one.line.drop()
                reader.cancel()


@cache
def _macs() -> list[str]:
    """Return the herd's MACs, the same in every round: a broker may keep something of each device that it ever saw."""
    return [fresh_mac() for _ in range(_DEVICES)]


async def _boot(stage: Stage) -> list[MqttAccess]:
    """Return the MQTT sections of the herd.

    Raises:
        Failed: Bootstrap failed for one of them.
    """
    slots = asyncio.Semaphore(_AT_ONCE)

    async def boot(client: httpx2.AsyncClient, mac: str) -> MqttAccess:
        async with slots:
            answer = await bootstrap.ask(stage.setup.ota_url, mac, stage.profile, client)
        access = read_mqtt(member(answer, "mqtt"))
        if access is None:
            raise Failed("bootstrap gave no usable mqtt section")
        return access

    async with (
        web(bootstrap.SECONDS) as client,
        asyncio.TaskGroup() as group,
    ):
        tasks = [group.create_task(boot(client, mac), name="herd boot") for mac in _macs()]
    return [task.result() for task in tasks]


@contextmanager
def _room_for(files: int) -> Iterator[None]:
    """Raise this process's limit of open files for the block.

    Raises:
        NotApplicable: It may not be raised so far.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < files:
        raise NotApplicable(f"this process may open {hard} files, and {files} are needed")
    enough = soft == resource.RLIM_INFINITY or soft >= files
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft if enough else files, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
