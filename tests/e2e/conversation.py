"""A simulated stock device that talks to a running fleet."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fleet.sim.device import SimDevice
from fleet.sim.profile import find_profile
from fleet.sim.turns import Turn
from tests.support.fleet_process import FleetProcess
from tests.support.offline_speech import to_16k, whisper


def new_mac() -> str:
    """Return a MAC that no other test uses."""
    return "02:" + ":".join(f"{byte:02x}" for byte in secrets.token_bytes(5))


@asynccontextmanager
async def device_of(fleet: FleetProcess, profile: str = "P1") -> AsyncIterator[SimDevice]:
    """Power a device on and wake it; at the end check that the server broke none of the firmware's rules."""
    device = SimDevice(find_profile(profile), ota_url=fleet.ota, mac=new_mac())
    async with device.running():
        assert await device.wake()
        yield device
        await device.hang_up()
    assert device.report.violations == []


async def transcript_of(turn: Turn) -> str:
    """Return what a person would have understood of what the device played."""
    heard = to_16k(turn.heard(), turn.sample_rate)
    return (await whisper().transcribe(heard)).text.lower()
