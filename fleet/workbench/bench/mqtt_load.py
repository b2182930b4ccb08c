"""The process that plays the devices: `python -m fleet.workbench.bench.mqtt_load CONFIG`; commands on standard input.

One connection for each device, as in a real fleet; the process also plays their edge.
"""

import asyncio
import itertools
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from fleet.adapters.net.mqtt.url import parse_mqtt_url
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import DEVICE_SECONDS
from fleet.ground import runtime
from fleet.ground.settings import Settings
from fleet.ground.tasks import running
from fleet.wire.dialects import XIAOZHI
from fleet.wire.identity import CredentialKeys
from fleet.workbench.bench import control
from fleet.workbench.bench.edge_stub import EdgeStub
from fleet.workbench.bench.servers import read_settings
from fleet.workbench.bench.silent_device import SilentDevice, mac

_TICK = 0.005
_AT_ONCE = 20
"""Devices that connect, or introduce themselves, at the same time."""
_END_SECONDS = 10.0
_CHUNK = 500


class Tally:
    """What became of the operations of one window."""

    def __init__(self) -> None:
        # uvloop's own clock counts whole milliseconds.
        self._clock = time.perf_counter
        self._all = asyncio.Event()
        self._begun = 0
        self._ms: list[float] = []

    def begin(self, then: Callable[[], None] = lambda: None) -> Callable[[], None]:
        """Count an operation; the answer is to be called when it has ended, and calls `then`."""
        at = self._clock()
        self._begun += 1
        self._all.clear()

        def end() -> None:
            self._ms.append((self._clock() - at) * 1000)
            if len(self._ms) == self._begun:
                self._all.set()
            then()

        return end

    async def settle(self) -> dict[str, Any]:
        """Wait for those under way, with a limit; return how many there were, and how long those took that ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS if self._begun else 0):
                await self._all.wait()
        return {"begun": self._begun, "ms": self._ms}


class MqttLoad:
    """The devices.

    Args:
        settings: Where broker and Redis are.
        store: The same Redis.
        edge: The edge of their sessions.
    """

    def __init__(self, settings: Settings, store: Store, edge: EdgeStub) -> None:
        self._keys = CredentialKeys(settings.keys.get_secret_value() if settings.keys else "")
        self._port = parse_mqtt_url(settings.mqtt_url or "").port
        self._store = store
        self._edge = edge
        self._devices: list[SilentDevice] = []
        self._next: Iterable[SilentDevice] = ()

    async def do(self, command: dict[str, Any]) -> dict[str, Any]:
        """Do what the benchmark says and return the answer."""
        match command["do"]:
            case "connect":
                return await self._connect(command["count"])
            case "copy":
                await self._copy(command["known"])
            case "hello":
                return await self._hello(command["rate"], command["seconds"], command["goodbye"])
            case "speak":
                return await self._speak(command["rate"], command["seconds"], command["calls"])
            case "talk":
                return await self._talk(command["at_once"], command["seconds"], command["calls"])
        return {"calls": sum(device.calls for device in self._devices)}

    async def _connect(self, count: int) -> dict[str, Any]:
        await self._edge.open()
        tally, known = Tally(), len(self._devices)
        fresh = [SilentDevice(number) for number in range(known, known + count)]
        self._devices += fresh
        self._next = itertools.cycle(self._devices)

        keys, redis = self._store.keys, self._store.client

        async def connect(device: SilentDevice) -> None:
            ended = tally.begin()
            # As bootstrap notes of firmware: others are asked for their tools at their first hello.
            await redis.hset(keys.device(device.mac), "dialect", XIAOZHI)
            await device.connect(self._port, self._keys.issue("device", device.mac, policy="first", generation=1))
            async with asyncio.timeout(_END_SECONDS):
                await device.listed.wait()
            ended()

        await _side_by_side(fresh, connect)
        return await tally.settle()

    async def _copy(self, known: int) -> None:
        """Make as many devices known as are wanted in all, by copies of what is kept of a connected one."""
        keys, redis, first = self._store.keys, self._store.client, self._devices[0].mac
        record = await cast("Awaitable[dict[str, str]]", redis.hgetall(keys.device(first)))
        tools = await redis.get(keys.tools(first))
        numbers = range(len(self._devices), known)
        for at in range(0, len(numbers), _CHUNK):
            pipe = redis.pipeline(transaction=False)
            for name in map(mac, numbers[at : at + _CHUNK]):
                pipe.hset(keys.device(name), mapping=cast("Any", record))
                pipe.expire(keys.device(name), DEVICE_SECONDS)
                if tools:
                    pipe.set(keys.tools(name), tools, ex=DEVICE_SECONDS)
            await pipe.execute()

    async def _hello(self, rate: float, seconds: float, goodbye: bool) -> dict[str, Any]:
        """Let one device after the other say hello, and at once goodbye if that is wanted."""
        tally = Tally()

        async def greet(device: SilentDevice) -> None:
            device.hello(tally.begin(device.goodbye if goodbye else lambda: None))

        await self._pace(rate, seconds, greet)
        return await tally.settle()

    async def _speak(self, rate: float, seconds: float, calls: int) -> dict[str, Any]:
        """Let one user after the other say something."""
        tally = Tally()
        await self._pace(rate, seconds, lambda device: self._edge.say(device, calls, tally.begin()))
        return await tally.settle()

    async def _talk(self, at_once: int, seconds: float, calls: int) -> dict[str, Any]:
        """Let some users say the next thing as soon as they have an answer."""
        tally, clock = Tally(), asyncio.get_running_loop().time
        end = clock() + seconds

        async def converse(device: SilentDevice) -> None:
            while clock() < end:
                answered = asyncio.Event()
                await self._edge.say(device, calls, tally.begin(answered.set))
                try:
                    async with asyncio.timeout(_END_SECONDS):
                        await answered.wait()
                except TimeoutError:
                    return

        async with asyncio.TaskGroup() as group:
            for device in self._devices[:at_once]:
                group.create_task(converse(device), name=f"user of {device.mac}")
        return await tally.settle()

    async def _pace(self, rate: float, seconds: float, do: Callable[[SilentDevice], Awaitable[None]]) -> None:
        """Do so many operations, evenly or, after a pause of this process, as soon as possible."""
        clock = asyncio.get_running_loop().time
        begun, done, count = clock(), 0, max(1, round(rate * seconds))
        devices = iter(self._next)
        while done < count:
            while done < min(count, (clock() - begun) * rate):
                await do(next(devices))
                done += 1
            await asyncio.sleep(_TICK)


async def _side_by_side(devices: Sequence[SilentDevice], do: Callable[[SilentDevice], Awaitable[None]]) -> None:
    waiting = iter(devices)

    async def work() -> None:
        for device in waiting:
            await do(device)

    async with asyncio.TaskGroup() as group:
        for number in range(_AT_ONCE):
            group.create_task(work(), name=f"devices {number}")


async def _serve(settings: Settings) -> None:
    store = await Store.open(settings.redis_url or "", settings.shards)
    try:
        edge = EdgeStub(store)
        async with running("edge", edge.run):
            await control.obey(lambda: MqttLoad(settings, store, edge).do)
    finally:
        await store.close()


def main() -> int:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    settings = read_settings(Path(sys.argv[1]))
    return runtime.run(lambda: _serve(settings))


if __name__ == "__main__":
    sys.exit(main())
