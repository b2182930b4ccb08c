"""The process that plays the devices: `python -m fleet.workbench.bench.mqtt_load SERVER …`; commands on standard input.

One connection for each device, as in a real fleet. SERVER is `fleet`, `stub` (this process also plays the edge of the
sessions) or `up`, each with the file of the settings, or `peer` with the port and the key of the other gateway.
"""

import asyncio
import itertools
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import DEVICE_SECONDS
from fleet.ground import runtime
from fleet.ground.tasks import running
from fleet.wire.identity import Credentials
from fleet.workbench.bench import control
from fleet.workbench.bench.edge_stub import EdgeStub
from fleet.workbench.bench.logins import BootstrapLogins, Logins, PeerLogins, StoreLogins
from fleet.workbench.bench.servers import read_settings
from fleet.workbench.bench.silent_device import SilentDevice, mac

_TICK = 0.005
_AT_ONCE = 20
"""Devices that connect at the same time."""
_END_SECONDS = 60.0
_CHUNK = 500

Operation = Callable[[SilentDevice, Callable[[], None]], Awaitable[None]]
"""What a device does; calls the second argument when it has ended."""


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
        """Wait for the operations under way, with a limit; return how many began, and the times of those that ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS if self._begun else 0):
                await self._all.wait()
        return {"begun": self._begun, "ms": self._ms}


class MqttLoad:
    """The devices.

    Args:
        logins: How they sign in.
        store: The Redis of roles that run apart; None for another server.
        edge: The edge of their sessions, if this process plays it.
    """

    def __init__(self, logins: Logins, store: Store | None = None, edge: EdgeStub | None = None) -> None:
        self._logins = logins
        self._store = store
        self._edge = edge
        self._devices: list[SilentDevice] = []
        self._waiting: dict[SilentDevice, Credentials] = {}
        self._next: Iterator[SilentDevice] = iter(())

    async def do(self, command: dict[str, Any]) -> dict[str, Any]:
        """Do what the benchmark says and return the answer."""
        for device in self._devices:
            device.forget()
        match command["do"]:
            case "introduce":
                await self._introduce(command["count"], command["tools"])
            case "connect":
                return await self._connect()
            case "copy" if self._store:
                await self._copy(command["known"], self._store)
            case "sessions":
                return {"sessions": [device.udp for device in self._devices if device.session]}
            case "hello":
                hello = _greet if command["goodbye"] else _say_hello
                return await self._paced(command["rate"], command["seconds"], hello)
            case "cycle":
                devices = [self._next] * command["at_once"]
                return await self._closed(devices, command["seconds"], _greet)
            case "speak" if self._edge:
                speak = partial(self._edge.say, command["calls"])
                return await self._paced(command["rate"], command["seconds"], speak)
            case "talk" if self._edge:
                users = [itertools.repeat(device) for device in self._devices[: command["at_once"]]]
                return await self._closed(users, command["seconds"], partial(self._edge.say, command["calls"]))
        return {"calls": sum(device.calls for device in self._devices)}

    async def _introduce(self, count: int, tools: int) -> None:
        """Make more devices known, which connect next."""
        known = len(self._devices)
        for number in range(known, known + count):
            device = SilentDevice(number, tools, self._logins.topic)
            self._devices.append(device)
            self._waiting[device] = await self._logins.introduce(device.mac)
        self._next = itertools.cycle(self._devices)

    async def _connect(self) -> dict[str, Any]:
        if self._edge:
            await self._edge.open()
        tally, fresh = Tally(), self._waiting
        self._waiting = {}

        async def connect(device: SilentDevice) -> None:
            ended = tally.begin()
            await device.connect(self._logins.port, fresh[device])
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_SECONDS):
                    await device.listed.wait()
                ended()

        await _side_by_side(list(fresh), connect)
        return await tally.settle()

    async def _copy(self, known: int, store: Store) -> None:
        """Make as many devices known as are wanted in all, by copies of what is kept of a connected one."""
        keys, redis, first = store.keys, store.client, self._devices[0].mac
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

    async def _closed(self, users: Sequence[Iterator[SilentDevice]], seconds: float, do: Operation) -> dict[str, Any]:
        """Let each user do the operation with its next device as soon as the one before has ended."""
        tally, clock = Tally(), asyncio.get_running_loop().time
        end = clock() + seconds

        async def repeat(devices: Iterator[SilentDevice]) -> None:
            while clock() < end:
                ended = asyncio.Event()
                await do(next(devices), tally.begin(ended.set))
                try:
                    async with asyncio.timeout(_END_SECONDS):
                        await ended.wait()
                except TimeoutError:
                    return

        async with asyncio.TaskGroup() as group:
            for number, devices in enumerate(users):
                group.create_task(repeat(devices), name=f"user {number}")
        return await tally.settle()

    async def _paced(self, rate: float, seconds: float, do: Operation) -> dict[str, Any]:
        """Do so many operations, evenly or, after a pause of this process, as soon as possible."""
        tally, clock = Tally(), asyncio.get_running_loop().time
        begun, done, count = clock(), 0, max(1, round(rate * seconds))
        while done < count:
            while done < min(count, (clock() - begun) * rate):
                await do(next(self._next), tally.begin())
                done += 1
            await asyncio.sleep(_TICK)
        return await tally.settle()


async def _say_hello(device: SilentDevice, ended: Callable[[], None]) -> None:
    device.hello(ended)


async def _greet(device: SilentDevice, ended: Callable[[], None]) -> None:
    """Let a device say hello and, when it has the answer, goodbye."""

    def welcomed() -> None:
        device.goodbye()
        ended()

    device.hello(welcomed)


async def _side_by_side(devices: Sequence[SilentDevice], do: Callable[[SilentDevice], Awaitable[None]]) -> None:
    waiting = iter(devices)

    async def work() -> None:
        for device in waiting:
            await do(device)

    async with asyncio.TaskGroup() as group:
        for number in range(_AT_ONCE):
            group.create_task(work(), name=f"devices {number}")


async def _serve(kind: str, *arguments: str) -> None:
    if kind == "peer":
        port, key = arguments
        return await control.obey(lambda: MqttLoad(PeerLogins(int(port), key)).do)
    settings = read_settings(Path(arguments[0]))
    if kind == "up":
        return await control.obey(lambda: MqttLoad(BootstrapLogins(settings)).do)
    store = await Store.open(settings.redis_url or "", settings.shards)
    try:
        edge = EdgeStub(store) if kind == "stub" else None
        async with running("edge", edge.run) if edge else nullcontext():
            await control.obey(lambda: MqttLoad(StoreLogins(settings, store), store, edge).do)
    finally:
        await store.close()


def main() -> int:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return runtime.run(lambda: _serve(*sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
