"""A simulated stock device that talks to a running fleet."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.profiles.profile import find_profile
from fleet.workbench.sim.records.turns import Turn
from tests.support.fleet_process import FleetProcess
from tests.support.offline_speech import to_16k, whisper
from tests.support.waking import broken_rules, wake_up

HELD_UP_MS = 100.0
"""A process that only waits and came later than this was on a machine too busy for speech without a gap."""


def new_mac() -> str:
    """Return a MAC that no other test uses."""
    return "02:" + ":".join(f"{byte:02x}" for byte in secrets.token_bytes(5))


@asynccontextmanager
async def device_of(fleet: FleetProcess, profile: str = "P1") -> AsyncIterator[SimDevice]:
    """Power a device on and wake it; at the end check that the server broke none of the firmware's rules."""
    device = SimDevice(find_profile(profile), ota_url=fleet.ota, mac=new_mac())
    async with device.running(240):
        await wake_up(device)
        yield device
        await device.hang_up(240)
    broken = broken_rules(device) if device.report.held_up_ms > HELD_UP_MS else device.report.violations
    assert not broken, broken


async def transcript_of(turn: Turn) -> str:
    """Return what a person would have understood of what the device played."""
    heard = to_16k(turn.heard(), turn.sample_rate)
    return (await whisper().transcribe(heard)).text.lower()
