"""Group M, continued: many devices that come back at once."""

import asyncio
import random
import resource
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import cache

import httpx2

from fleet.workbench.conformance.checks.mqtt import GROUP
from fleet.workbench.conformance.context import CheckContext, fresh_mac
from fleet.workbench.conformance.verdict import Failed, NotApplicable, require, span
from fleet.workbench.sim.bootstrap import request
from fleet.workbench.sim.bootstrap.ota import MqttAccess, read_mqtt
from fleet.workbench.sim.messages import message, outbound
from fleet.workbench.sim.messages.message import member
from fleet.workbench.sim.network.https import web
from fleet.workbench.sim.records import clock
from fleet.workbench.sim.records.change_signal import ChangeSignal
from fleet.workbench.sim.scripted.mqtt_connection import RawMqttConnection

_DEVICES = 2000
_WINDOW = 10.0
_GREETED = 5
_SPARE_FILES = 200
_AT_ONCE = 16
"""Requests to bootstrap side by side."""


@GROUP.check(
    "M11", "2000 devices that connect within ten seconds are all accepted", profiles="P1", alone=True, seconds=180
)
async def accepts_a_storm(context: CheckContext) -> str:
    with _room_for(_DEVICES + _SPARE_FILES):
        accesses = await _boot(context)
        async with _devices(context, accesses) as devices:
            await _gather(devices)
            faults = [one.fault for one in devices if one.fault]
            require(not faults, f"{len(faults)} of {_DEVICES} not accepted: {', '.join(sorted(set(faults))[:3])}")
            lost = sum(not one.mqtt.up for one in devices)
            require(not lost, f"{lost} of {_DEVICES} connections were closed again")
            answered = max([await one.greet() for one in random.sample(devices, _GREETED)])
            return f"the slowest after {span(max(one.took for one in devices))}; then hellos within {span(answered)}"


class _Device:
    """One of many: it connects, and may say hello."""

    def __init__(self, context: CheckContext, access: MqttAccess) -> None:
        self.mqtt = RawMqttConnection(access, self._receive, context.setup.tls)
        self.took = 0.0
        """Seconds from TCP's begin to CONNACK."""
        self.fault = ""
        self._hello = outbound.hello(context.profile).encode()
        self._joined = asyncio.Event()
        self._greeted = False
        self._signal = ChangeSignal()

    async def join(self, delay: float) -> None:
        await asyncio.sleep(delay)
        begun = clock.now()
        try:
            code = await self.mqtt.connect()
        except Failed as error:
            self.fault = str(error)
        else:
            self.fault = f"CONNACK {code}" if code else ""
            self._joined.set()
        self.took = clock.now() - begun

    async def read(self) -> None:
        """Read whatever comes from the moment of its connection on."""
        await self._joined.wait()
        await self.mqtt.run()

    async def greet(self, seconds: float = 10.0) -> float:
        """Say hello and return after how long it was answered.

        Raises:
            Failed: It was not.
        """
        begun = clock.now()
        self.mqtt.publish(self._hello)
        if not await self._signal.within(seconds, lambda: self._greeted):
            raise Failed(f"all were accepted, but then a hello was not answered within {seconds:g} s")
        return clock.now() - begun

    def _receive(self, _: str, payload: bytes) -> None:
        got = message.parse(payload)
        if got is not None and message.text(got, "type") == "hello":
            self._greeted = True
            self._signal.notify()


async def _gather(devices: Sequence[_Device]) -> None:
    async with asyncio.TaskGroup() as group:
        for number, device in enumerate(devices):
            group.create_task(device.join(random.uniform(0, _WINDOW)), name=f"device {number}")


@asynccontextmanager
async def _devices(context: CheckContext, accesses: Sequence[MqttAccess]) -> AsyncIterator[list[_Device]]:
    """Give devices that read whatever comes until the block ends."""
    devices = [_Device(context, access) for access in accesses]
    async with asyncio.TaskGroup() as group:
        readers = [group.create_task(one.read(), name="device reader") for one in devices]
        try:
            yield devices
        finally:
            for one, reader in zip(devices, readers, strict=True):
                one.mqtt.drop()
                reader.cancel()


@cache
def _macs() -> list[str]:
    """Return the MACs, the same in every round: a broker may keep something of each device that it ever saw."""
    return [fresh_mac() for _ in range(_DEVICES)]


async def _boot(context: CheckContext) -> list[MqttAccess]:
    """Return the MQTT sections of the devices.

    Raises:
        Failed: Bootstrap failed for one of them.
    """
    slots = asyncio.Semaphore(_AT_ONCE)

    async def boot(client: httpx2.AsyncClient, mac: str) -> MqttAccess:
        async with slots:
            answer = await request.ask(context.setup.ota_url, mac, context.profile, client)
        access = read_mqtt(member(answer, "mqtt"))
        if access is None:
            raise Failed("bootstrap gave no usable mqtt section")
        return access

    async with (
        web(request.SECONDS) as client,
        asyncio.TaskGroup() as group,
    ):
        tasks = [group.create_task(boot(client, mac), name="device boot") for mac in _macs()]
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
