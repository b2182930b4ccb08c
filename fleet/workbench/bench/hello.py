"""`scripts/bench hello`: what a hello costs, and a device that does nothing, with few and with many known devices."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fleet.adapters.redis import keys
from fleet.workbench.bench.experiment import Experiment, Progress
from fleet.workbench.bench.silent_device import mac
from fleet.workbench.bench.testbed import Cost, Testbed, Window, testbed

LOW_RATE = 20.0


@dataclass(frozen=True, slots=True)
class Idle:
    """Bytes that one more connected device takes that does nothing."""

    redis: float
    tools: float
    """Part of `redis`: the list of its tools."""
    worker: float
    broker: float


@dataclass(frozen=True, slots=True)
class HelloResult:
    """All that was measured with so many known devices."""

    devices: int
    connected: int
    connect: Cost
    """A device connects and is asked for its tools."""
    hello: Cost
    goodbye_us: dict[str, float]
    """What a hello with a goodbye costs more than one without, in microseconds by part."""
    low: Cost
    """At `LOW_RATE`: hellos with goodbyes."""
    idle: Idle
    at_rest: dict[str, float]
    """Part of a core that each part uses when no device does anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HelloExperiment(Experiment[list[HelloResult]]):
    """Hellos of devices that connect and do nothing else, with several numbers of known devices."""

    name: ClassVar[str] = "hello"

    devices: Sequence[int]
    """Known ones."""
    connected: int
    """Most that are connected; the others are known from before."""
    rate: float
    """Hellos a second, in the windows whose CPU time counts."""

    async def measure(self, progress: Progress) -> list[HelloResult]:
        return [await self._with(count, progress) for count in self.devices]

    async def _with(self, count: int, progress: Progress) -> HelloResult:
        progress(f"{count} devices: starting")
        async with testbed(edge=True) as site:
            connected = min(count, self.connected)
            progress(f"{count} devices: at rest")
            await site.rest()
            progress(f"{count} devices: connecting")
            connect, idle = await self._connect(connected, site)
            await site.load.ask("copy", known=count)
            progress(f"{count} devices: hellos")
            hello = Cost.of(await self._windows(site, goodbye=False))
            progress(f"{count} devices: hellos and goodbyes")
            both = Cost.of(await self._windows(site, goodbye=True))
            progress(f"{count} devices: low load")
            low = await site.measure("hello", rate=LOW_RATE, seconds=2 * self.seconds, goodbye=True)
            return HelloResult(
                devices=count,
                connected=connected,
                connect=Cost.of([connect]),
                hello=hello,
                goodbye_us={part: both.us[part].median - hello.us[part].median for part in hello.us},
                low=Cost.of([low]),
                idle=idle,
                at_rest=site.meter.idle,
            )

    async def _connect(self, connected: int, site: Testbed) -> tuple[Window, Idle]:
        """Let devices connect in two halves; return what the second half cost, and what all of them left behind."""
        kept, before = await _kept(site), site.meter.look()
        await site.arrive(connected // 2)
        connect = await site.arrive(connected - connected // 2)
        after = site.meter.look()
        # Redis keeps more of a device that had a session once.
        await site.measure("hello", rate=self.rate, seconds=connected / self.rate, goodbye=True)
        idle = Idle(
            redis=(await _kept(site) - kept) / connected,
            tools=float(await site.store.client.memory_usage(site.store.keys.tools(mac(0))) or 0),
            worker=(after["worker"].memory - before["worker"].memory) / connected,
            broker=(after["broker"].memory - before["broker"].memory) / connected,
        )
        return connect, idle

    async def _windows(self, site: Testbed, *, goodbye: bool) -> list[Window]:
        return [
            await site.measure("hello", rate=self.rate, seconds=self.seconds, goodbye=goodbye)
            for _ in range(self.repeats)
        ]


async def _kept(site: Testbed) -> int:
    """Return the bytes that Redis keeps, without the inbox of the edge, which does not grow with the devices."""
    client, inboxes = site.store.client, 0
    for edge in await client.smembers(keys.EDGES):
        inboxes += await client.memory_usage(keys.edge_inbox(str(edge)), samples=0) or 0
    return await site.data() - inboxes
