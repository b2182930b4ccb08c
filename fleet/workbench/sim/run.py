"""A whole simulation: power on, converse, report."""

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fleet.workbench.sim.conversation import Opening, Said, Script, converse
from fleet.workbench.sim.device import TURN_SECONDS, SimDevice
from fleet.workbench.sim.network.faults import Faults
from fleet.workbench.sim.profiles.profile import PROFILES, Profile
from fleet.workbench.sim.records.journal import Step
from fleet.workbench.sim.records.report import Report

DEFAULT_MAC = "02:00:00:00:00:01"
"""Locally administered, so that no real board has it."""


@dataclass(frozen=True, slots=True)
class SimOptions:
    """What is simulated.

    `utterances` are PCM at 16 kHz, live voices or typed texts. `on_sound` is called with PCM that is played, and its
    rate in Hz. `reply` and `report` are files to write.
    """

    ota_url: str
    utterances: Sequence[Said]
    profile: Profile = field(default_factory=lambda: PROFILES["P1"])
    mac: str = DEFAULT_MAC
    opening: Opening = "wake"
    wake_text: str = "hi"
    turn_seconds: float = TURN_SECONDS
    ota_tries: int = 1
    """Firmware makes ten, with growing pauses; a person at a terminal would rather know at once."""
    tls: ssl.SSLContext | None = None
    on_step: Callable[[Step], None] | None = None
    on_sound: Callable[[bytes, int], None] | None = None
    reply: Path | None = None
    report: Path | None = None
    faults: Faults = field(default_factory=Faults)
    seed: int | None = None


async def simulate(options: SimOptions) -> Report:
    """Run one device through its conversation.

    Raises:
        Unavailable: Bootstrap or MQTT could not be reached; what was found out until then is written all the same.
    """
    timing = replace(options.profile.timing, ota_tries=options.ota_tries)
    profile = replace(options.profile, timing=timing)
    device = SimDevice(
        profile,
        ota_url=options.ota_url,
        mac=options.mac,
        on_step=options.on_step,
        tls=options.tls,
        seed=options.seed,
        faults=options.faults,
    )
    device.turns.on_sound = options.on_sound
    script = Script(options.utterances, options.opening, options.wake_text, turn_seconds=options.turn_seconds)
    try:
        async with device.running():
            await converse(device, script)
    finally:
        _write(device, options)
    return device.report


def _write(device: SimDevice, options: SimOptions) -> None:
    if options.reply:
        options.reply.write_bytes(device.heard_wav())
    if options.report:
        device.report.write(options.report)
