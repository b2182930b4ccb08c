"""The user of a simulated device, who wakes it until it listens, and what counts of its rules on a busy machine."""

import asyncio

from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.records.audit import Violation

OF_TIME = (
    *("hello-missing", "hello-late", "hello-slow", "abort-unanswered", "audio-after-abort", "stop-late"),
    *("stuck-speaking", "stuck-listening", "audio-outside-speaking", "audio-before-clear", "session-foreign"),
    *("underrun", "pause", "speech-without-channel", "mailbox-overflow", "queue-overflow"),
)
"""Rules that are broken, too, where a process has no processor for a moment."""


async def wake_up(device: SimDevice) -> None:
    """Wake a device; return when it listens.

    Firmware waits 10 s for the answer to its hello, which a busy machine may exceed: its user tries again.
    """
    async with asyncio.timeout(240):
        while not await device.wake():
            pass


def broken_rules(device: SimDevice) -> list[Violation]:
    """Return what the server broke of the firmware's rules, but for those of time.

    Conformance and conversations, beside which nothing runs, hold them to be kept.
    """
    return [one for one in device.report.violations if one.rule not in OF_TIME]
