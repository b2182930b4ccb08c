"""A simulated device before a scripted server: powered on, with an open channel, and spoken to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.network.faults import Faults
from fleet.workbench.sim.profiles.profile import Profile
from tests.support.scripted_server import ScriptedServer

MAC = "02:00:00:00:00:01"
LIMIT = 240.0


@asynccontextmanager
async def powered(server: ScriptedServer, profile: Profile, faults: Faults | None = None) -> AsyncIterator[SimDevice]:
    """Power a device on until the block ends."""
    device = SimDevice(profile, ota_url=server.ota_url, mac=MAC, seed=1, faults=faults or Faults())
    async with asyncio.timeout(LIMIT), device.running(LIMIT):
        yield device


@asynccontextmanager
async def talking(server: ScriptedServer, profile: Profile, faults: Faults | None = None) -> AsyncIterator[SimDevice]:
    """Power on, and open the channel by the button."""
    async with powered(server, profile, faults) as device, asyncio.TaskGroup() as tasks:
        pressed = tasks.create_task(device.press(LIMIT))
        await server.expect(type="hello")
        server.welcome()
        assert await pressed
        await server.expect(type="listen", state="start")
        await server.expect_datagrams(1)
        yield device


def patient(profile: Profile, **changes: Any) -> Profile:
    """Return a profile that waits as long as a test for what must come, and comes back soon; changes are of its times.

    A test of a limit sets it anew.
    """
    long = {"ota_read": LIMIT, "mqtt_connect": LIMIT, "hello": LIMIT}
    short = {"ota_tries": 1, "reconnect": 0.1, "reboot": 0.05}
    return replace(profile, timing=replace(profile.timing, **{**long, **short, **changes}))


async def run_on(seconds: float) -> None:
    """Let so many seconds pass in which this process runs: the time for which it stood still does not count."""
    for _ in range(round(seconds / 0.02)):
        await asyncio.sleep(0.02)


async def start_speech(server: ScriptedServer, device: SimDevice) -> None:
    """Send `tts start`, and wait until the queue is surely cleared."""
    server.send(type="tts", session_id=server.session, state="start")
    assert await device.until(LIMIT, lambda: device.speaking)
    await asyncio.sleep(0.12)


def stop_speech(server: ScriptedServer) -> None:
    server.send(type="tts", session_id=server.session, state="stop")
