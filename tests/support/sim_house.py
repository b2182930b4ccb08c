"""Simulated devices in a thread of their own, so that a test may drive a browser without a loop."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any, TypeVar

from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.network.faults import Faults
from fleet.workbench.sim.profiles.profile import find_profile

T = TypeVar("T")
LIMIT = 300.0


class SimHouse:
    """Devices that are switched on one after the other, and off at the end; methods may be called from any thread."""

    def __init__(self, ota: str, loop: asyncio.AbstractEventLoop, stack: AsyncExitStack) -> None:
        self._ota, self._loop, self._stack = ota, loop, stack
        self._starting: list[asyncio.Task[None]] = []
        self.devices: list[SimDevice] = []

    def switch_on(self, mac: str, faults: Faults | None = None) -> SimDevice:
        """Switch a device on; it may wait for somebody who admits it."""
        return self.run(self._begin(mac, faults or Faults()))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in the loop of the devices."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LIMIT)

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something that devices do."""
        self.run(_until(holds))

    def wait_for_all(self) -> None:
        """Wait until all devices are connected."""
        self.run(_all(self._starting))

    async def _begin(self, mac: str, faults: Faults) -> SimDevice:
        device = SimDevice(find_profile("P1"), ota_url=self._ota, mac=mac, seed=1, faults=faults)
        self.devices.append(device)
        self._starting.append(asyncio.create_task(self._run(device), name=f"device {mac}"))
        return device

    async def _run(self, device: SimDevice) -> None:
        await self._stack.enter_async_context(device.running(LIMIT))


async def _all(tasks: list[asyncio.Task[None]]) -> None:
    await asyncio.gather(*tasks)


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT):
        while not holds():
            await asyncio.sleep(0.1)


@contextmanager
def sim_house(ota: str) -> Iterator[SimHouse]:
    """Keep simulated devices until the block ends."""
    ready, over, found = threading.Event(), asyncio.Event(), list[SimHouse]()

    async def live() -> None:
        async with AsyncExitStack() as stack:
            found.append(SimHouse(ota, asyncio.get_running_loop(), stack))
            ready.set()
            await over.wait()

    thread = threading.Thread(target=asyncio.run, args=(live(),), name="sim-house", daemon=True)
    thread.start()
    assert ready.wait(LIMIT)
    yield found[0]
    found[0]._loop.call_soon_threadsafe(over.set)
    thread.join(LIMIT)
