"""`scripts/bench hello`: what a hello costs, and a device that does nothing, with few and with many known devices."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fleet.adapters.redis import keys
from fleet.workbench.bench.puppet import mac
from fleet.workbench.bench.stand import Cost, Stand, Window, stand

LOW_RATE = 20.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured: `seconds` a window, so many windows of each kind."""

    devices: Sequence[int]
    """Known ones."""
    connected: int
    """Most that are connected; the others are known from before."""
    rate: float
    """Hellos a second, in the windows whose CPU time counts."""
    seconds: float
    repeats: int


@dataclass(frozen=True, slots=True)
class Idle:
    """Bytes that one more connected device takes that does nothing."""

    redis: float
    tools: float
    """Part of `redis`: the list of its tools."""
    worker: float
    broker: float


@dataclass(frozen=True, slots=True)
class Case:
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


async def measure(plan: Plan, doing: Callable[[str], None]) -> list[Case]:
    """Measure all cases.

    Args:
        plan: What.
        doing: Told what is being measured.

    Raises:
        ConfigError: A program is missing.
        Unavailable: A process of the benchmark ended.
    """
    return [await _case(plan, count, doing) for count in plan.devices]


async def _case(plan: Plan, count: int, doing: Callable[[str], None]) -> Case:
    doing(f"{count} devices: starting")
    async with stand() as here:
        return await _Run(plan, count, here, lambda what: doing(f"{count} devices: {what}")).case()


class _Run:
    """One case."""

    def __init__(self, plan: Plan, count: int, here: Stand, doing: Callable[[str], None]) -> None:
        self._plan = plan
        self._count = count
        self._here = here
        self._doing = doing

    async def case(self) -> Case:
        here, connected = self._here, min(self._count, self._plan.connected)
        first_half = connected // 2
        self._doing("at rest")
        await here.rest()
        self._doing("connecting")
        await self._arrive(first_half)
        kept, before = await self._kept(), here.look()
        connect = await self._arrive(connected - first_half)
        more, now, after = connected - first_half, await self._kept(), here.look()
        idle = Idle(
            redis=(now - kept) / more,
            tools=float(await here.store.client.memory_usage(here.store.keys.tools(mac(0))) or 0),
            worker=(after["worker"].memory - before["worker"].memory) / more,
            broker=(after["broker"].memory - before["broker"].memory) / more,
        )
        await here.crowd.ask("copy", known=self._count)
        hello = await self._windows("hellos", goodbye=False)
        both = Cost.of(await self._windows("hellos and goodbyes", goodbye=True))
        self._doing("low load")
        low = await here.measure("hello", rate=LOW_RATE, seconds=2 * self._plan.seconds, goodbye=True)
        cost = Cost.of(hello)
        return Case(
            devices=self._count,
            connected=connected,
            connect=Cost.of([connect]),
            hello=cost,
            goodbye_us={part: both.us[part].median - cost.us[part].median for part in cost.us},
            low=Cost.of([low]),
            idle=idle,
            at_rest=here.idle,
        )

    async def _arrive(self, count: int) -> Window:
        """Let devices connect, then say hello and goodbye once; return what the first cost."""
        connect = await self._here.measure("connect", count=count)
        await self._here.measure("hello", rate=self._plan.rate, seconds=count / self._plan.rate, goodbye=True)
        return connect

    async def _kept(self) -> int:
        """Return the bytes that Redis keeps, without the mail of the edge, which does not grow with the devices."""
        client = self._here.store.client
        mail = 0
        for edge in await client.smembers(keys.EDGES):
            mail += await client.memory_usage(keys.edge_mailbox(str(edge)), samples=0) or 0
        return await self._here.data() - mail

    async def _windows(self, what: str, *, goodbye: bool) -> list[Window]:
        self._doing(what)
        plan = self._plan
        return [
            await self._here.measure("hello", rate=plan.rate, seconds=plan.seconds, goodbye=goodbye)
            for _ in range(plan.repeats)
        ]
