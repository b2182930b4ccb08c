"""One run: everything started, many turns held, faults meanwhile, one more good turn for each device, all judged."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from redis.exceptions import RedisError

from fleet.ground.tasks import running
from fleet.workbench.conformance.steering.server import Steering
from fleet.workbench.local_servers.ports import LOOPBACK
from tests.chaos import history
from tests.chaos.calls import CallRecords
from tests.chaos.device import Device
from tests.chaos.history import Call, Execution, History, Turn, Violation
from tests.chaos.house import House, Moment
from tests.chaos.journal import Journal
from tests.chaos.members import Ensemble, build
from tests.chaos.monkey import Monkey
from tests.chaos.person import HESITATES, Person
from tests.chaos.plan import Fault, draw

QUIET_SECONDS = 8.0
"""Between the last fault and the last turns: a lease and a bit."""
LAST_CALLS_SECONDS = 120.0
"""Within which calls still open after the last turn must have ended: the wait for an answer and a sweep."""

_WITHDRAWN = '"answer withdrawn"'
"""The edge's log message."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a run is to be like; `limit` is how long a turn may take after the last fault, in seconds."""

    out: Path
    seed: int = 1
    turns: int = 1000
    faults: int = 100
    devices: int = 12
    limit: float = 30.0
    last: float = 0.0
    """So many seconds after the first of its last turns a device may begin another one, until one is good: on a busy
    machine processes may stand still long enough to fail a turn without any fault."""
    hesitates: float = HESITATES
    """Part of the turns with a pause to think."""
    reconnect: float = 1.0
    appendfsync: str = "always"
    models: tuple[str, int] = (LOOPBACK, 0)
    """Where the scripted models listen."""


Build = Callable[[Path, str], Ensemble]
"""Makes the processes from the folder for what they write and the address of the models."""
Strike = Callable[[Ensemble, Sequence[Fault], House], Monkey]


@dataclass(slots=True)
class Outcome:
    """What came of a run."""

    options: Options
    plan: list[Fault] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    executions: list[Execution] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    faults: list[Moment] = field(default_factory=list)
    missed: list[Fault] = field(default_factory=list)
    drains: dict[str, list[float]] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    withdrawn: int = 0
    """Answers that an edge had asked for in a pause, and withdrew because the user went on."""
    crashes: dict[str, int] = field(default_factory=dict)
    """Lines of the logs that tell of a fault inside a process, and how often."""
    seconds: float = 0.0


@dataclass(slots=True)
class Scenery:
    """What a run or a scenario works with."""

    ensemble: Ensemble
    house: House
    records: CallRecords
    people: list[Person]

    async def hold_first_turns(self) -> None:
        """Let every device hold a turn before anything goes wrong."""
        async with asyncio.TaskGroup() as group:
            for person in self.people:
                group.create_task(person.hold(), name=f"first turn {person.device.mac}")


@asynccontextmanager
async def scenery(options: Options, make: Build | None = None) -> AsyncIterator[Scenery]:
    """Start everything, with devices that are switched on; the processes end with the block."""
    make = make or partial(build, appendfsync=options.appendfsync)
    options.out.mkdir(parents=True, exist_ok=True)
    chance = random.Random(options.seed)
    async with AsyncExitStack() as stack:
        steering = await stack.enter_async_context(Steering(*options.models))
        ensemble = make(options.out, steering.url)
        stack.callback(ensemble.discard)
        ensemble.start()
        journal = Journal(options.out / "devices.jsonl", asyncio.get_running_loop().time)
        stack.callback(journal.close)
        house, records = House(steering, journal, options.limit), CallRecords(ensemble.redis_url)
        people = []
        for number in range(options.devices):
            mac = f"02:c4:05:00:{options.seed & 255:02x}:{number:02x}"
            device = Device(mac, ensemble.ota_url, journal, random.Random(chance.random()), options.reconnect)
            await stack.enter_async_context(device.running())
            people.append(Person(device, house, random.Random(chance.random()), options.hesitates))
        await stack.enter_async_context(running("call records", records.run))
        yield Scenery(ensemble, house, records, people)


async def run(
    options: Options,
    watch: Callable[[House, Monkey], None] = lambda *_: None,
    *,
    make: Build | None = None,
    plan: Sequence[Fault] | None = None,
    strike: Strike = Monkey,
) -> Outcome:
    """Hold a run.

    Args:
        options: What it is to be like.
        watch: Called once it has begun, with what can be watched.
        make: Makes the processes; ours on this machine without it.
        plan: The faults; drawn from the seed without it.
        strike: Makes who carries the plan out.
    """
    outcome = Outcome(options, list(draw(options.seed, options.faults, options.turns) if plan is None else plan))
    began = time.monotonic()
    async with scenery(options, make) as here:
        await here.hold_first_turns()
        monkey = strike(here.ensemble, outcome.plan, here.house)
        watch(here.house, monkey)
        await _endure(here, monkey, options.turns)
        await _settle(here, options.last)
        _collect(outcome, here, monkey)
    outcome.crashes = find_crashes(options.out)
    outcome.withdrawn = sum(log.read_text(errors="replace").count(_WITHDRAWN) for log in options.out.glob("edge-*.log"))
    outcome.seconds = time.monotonic() - began
    return outcome


async def _endure(here: Scenery, monkey: Monkey, turns: int) -> None:
    """Hold turns until there were enough and all faults are over."""
    house = here.house

    async def talk(person: Person) -> None:
        while house.over < turns or not done:
            await person.hold()
            await person.rest()

    done = False
    async with asyncio.TaskGroup() as group:
        for person in here.people:
            group.create_task(talk(person), name=f"person {person.device.mac}")
        await monkey.run()
        done = True


async def _settle(here: Scenery, seconds: float) -> None:
    """Let everything come to rest, hold the last turns, and read the last calls."""
    await asyncio.sleep(QUIET_SECONDS)

    async def hold_last(person: Person) -> None:
        until = here.house.now() + seconds
        while not history.was_good(await person.hold(final=True)) and here.house.now() < until:
            pass

    async with asyncio.TaskGroup() as group:
        for person in here.people:
            group.create_task(hold_last(person), name=f"last turn {person.device.mac}")
    give_up = here.house.now() + LAST_CALLS_SECONDS
    while here.house.now() < give_up:
        try:
            await here.records.look()
        except (RedisError, OSError) as error:
            here.house.blame("redis away", str(error))
        if all(call.states[-1] != "sent" for call in here.records.calls):
            return
        await asyncio.sleep(1.0)


def _collect(outcome: Outcome, here: Scenery, monkey: Monkey) -> None:
    house = here.house
    outcome.turns, outcome.executions = house.turns, house.journal.executions
    outcome.faults, outcome.missed = house.faults, monkey.missed
    outcome.drains = {member.name: member.drains for member in here.ensemble.all if member.drains}
    macs = [person.device.mac for person in here.people]
    broken = [
        Violation("firmware rule", f"{person.device.mac}: {one}")
        for person in here.people
        for one in person.device.rules_broken
    ]
    # Others may use the same Redis.
    outcome.calls = [call for call in here.records.calls if call.device in macs]
    judged = history.check(History(house.turns, house.journal.executions, outcome.calls, macs))
    outcome.violations = [*house.violations, *broken, *judged]


def find_crashes(out: Path) -> dict[str, int]:
    """Count the log lines that tell of an exception that nobody expected."""
    found: dict[str, int] = {}
    for log in sorted(out.glob("*.log")):
        for line in log.read_text(errors="replace").splitlines():
            if '"traceback"' in line or line.startswith("Traceback"):
                last = line.rpartition("\\n")[2].strip('"}') if '"traceback"' in line else line
                found[f"{log.name}: {last[:160]}"] = found.get(f"{log.name}: {last[:160]}", 0) + 1
    return found
