"""What devices do at a server of any kind, and the CPU time of each of its parts."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from fleet.workbench.bench.control import Child, child
from fleet.workbench.bench.testbed import MEETING_RATE, Site, Window

CONNECT, SATURATED = "connect, start MCP", "hello and goodbye, saturated"
UPLINK, DUPLEX = "packet up", "packet up and one down"
TOOLS = 12
"""Of each device, on two pages."""
IN_FLIGHT = 32
"""Devices that wait for the answer to their hello in the saturated window."""
_WARM = 0.1
"""Devices that come before those that count: part of them."""
_SETTLE_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the devices do: `seconds` is the length of a window, a twofold one at a low rate."""

    connected: int
    rates: Sequence[float]
    """Hellos with goodbyes a second."""
    saturated: bool = True
    """Whether devices also say hello as fast as the server answers."""
    streams: int
    """Devices whose microphones are open; 0: none."""
    seconds: float


@dataclass(slots=True)
class Found:
    """Windows by operation, and the memory of an idle device by part in bytes."""

    windows: dict[str, Window] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)


async def operations(site: Site, plan: Plan, known: int = 0) -> Found:
    """Let the devices connect, say hello and send audio, one after the other.

    Args:
        site: Just started.
        plan: What they do.
        known: Devices that Redis knows in all; only for roles of fleet.
    """
    found = Found()
    await site.rest()
    await site.arrive(round(plan.connected * _WARM) or 1, TOOLS)
    before = site.meter.look()
    found.windows[CONNECT] = await site.arrive(plan.connected, TOOLS)
    after = site.meter.look()
    found.memory = {part: (after[part].memory - before[part].memory) / plan.connected for part in after}
    if known:
        await site.load.ask("copy", known=known)
    await _hellos(site, plan, found.windows)
    if plan.streams:
        async with child("fleet.workbench.bench.udp_load", "audio load") as audio:
            await site.load.ask("hello", rate=MEETING_RATE, seconds=plan.streams / MEETING_RATE, goodbye=False)
            sessions = (await site.load.ask("sessions"))["sessions"]
            await audio.ask("open", sessions=sessions, port=sessions[0]["port"])
            await audio.ask("send")
            found.windows[UPLINK] = await _packets(site, audio, plan.seconds, "sent")
            if await site.begin_echo():
                found.windows[DUPLEX] = await _packets(site, audio, plan.seconds, "received")
    return found


async def _hellos(site: Site, plan: Plan, windows: dict[str, Window]) -> None:
    """Let devices say hello and goodbye, first to warm up."""
    await site.measure("hello", rate=MEETING_RATE, seconds=plan.connected * _WARM / MEETING_RATE, goodbye=True)
    for rate in plan.rates:
        seconds = plan.seconds * (2 if rate < MEETING_RATE else 1)
        windows[at_rate(rate)] = await site.measure("hello", rate=rate, seconds=seconds, goodbye=True)
    if plan.saturated:
        windows[SATURATED] = await site.measure("cycle", at_once=IN_FLIGHT, seconds=plan.seconds)


def at_rate(rate: float) -> str:
    """Return the name of hellos at a rate."""
    return f"hello and goodbye, {rate:g}/s"


async def _packets(site: Site, audio: Child, seconds: float, counter: str) -> Window:
    await asyncio.sleep(_SETTLE_SECONDS)
    before = await audio.ask("count")
    spent = await site.meter.during(asyncio.sleep(seconds))
    after = await audio.ask("count")
    count = after[counter] - before[counter]
    return Window(spent.seconds, spent.cpu, count, after["lost"] - before["lost"], [])
