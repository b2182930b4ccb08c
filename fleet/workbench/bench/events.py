"""`scripts/bench events`: what events cost who writes them, and who collects them.

Windows with and without events alternate in the same processes: events are switched by the streams of the shards.
"""

import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import ClassVar

from fleet.adapters.redis.shards.events import Outbox
from fleet.adapters.sql.database import Database, database_url
from fleet.adapters.sql.migrate import upgrade
from fleet.roles.control.leader.device_copies import DeviceCopies
from fleet.roles.control.leader.event_collector import EventCollector
from fleet.workbench.bench.experiment import Experiment, Progress
from fleet.workbench.bench.figures import Spread
from fleet.workbench.bench.silent_device import mac
from fleet.workbench.bench.testbed import Testbed, Window, testbed

OPERATIONS = ("hello and goodbye", "turn", "turn with a call")
AT_ONCE = 32
_MOST_WAITING = 4_000
_KINDS = (
    ("session.started", {"session": "0" * 32, "replaces": "", "dialect": "xiaozhi"}),
    ("tool.called", {"tool": "self.audio_speaker.set_volume", "outcome": "ok", "ms": 80, "turn": "0" * 32}),
    ("turn.answered", {"turn": "0" * 32, "session": "0" * 32, "stages": {"heard": 700, "first_token": 300}}),
    ("turn.spoken", {"turn": "0" * 32, "session": "0" * 32, "first_audio_ms": 900, "spoken_ms": 2400}),
    ("session.ended", {"session": "0" * 32, "reason": "idle"}),
)


@dataclass(frozen=True, slots=True)
class Difference:
    """CPU of one operation in microseconds, worker, edge, Redis and broker together."""

    without: Spread
    with_events: Spread
    percent: float
    """What events add to the median."""


@dataclass(frozen=True, slots=True)
class EventsResult:
    """All that was measured."""

    operations: dict[str, Difference]
    collected: int
    collect_us: Spread
    """CPU of control for one event, by round: reading, storing, usage, removing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsExperiment(Experiment[EventsResult]):
    """Operations with and without events, and the collection of events into SQLite."""

    name: ClassVar[str] = "events"

    connected: int
    rate: float
    """Turns a second."""
    events: int
    """Events of one round of the collector."""

    async def measure(self, progress: Progress) -> EventsResult:
        async with testbed(edge=True) as site:
            progress("connecting")
            await site.rest()
            await site.meet(self.connected, self.connected)
            found = await self._both(site, OPERATIONS[:1], progress)
        async with testbed(settings={"history_messages": 0}) as site:
            progress("connecting")
            await site.rest()
            await site.meet(self.connected, self.connected)
            found |= await self._both(site, OPERATIONS[1:], progress)
            progress("collecting")
            rounds = await self._collect(site)
        return EventsResult(found, self.events, Spread.of(rounds))

    async def _both(self, site: Testbed, names: Sequence[str], progress: Progress) -> dict[str, Difference]:
        """Measure in windows that alternate, each pair in an order by chance."""
        outbox, shards = Outbox(site.store), range(site.store.keys.shards)
        windows: dict[tuple[str, bool], list[Window]] = {(name, on): [] for name in names for on in (False, True)}
        for number in range(self.repeats):
            for on in random.sample((False, True), 2):
                if on:
                    await outbox.want(dict.fromkeys(shards, "0-0"))
                for name in names:
                    progress(f"{name}, {number + 1} of {self.repeats}, {'with' if on else 'without'} events")
                    windows[name, on].append(await self._window(site, name))
                for shard in shards:
                    await site.store.client.delete(site.store.keys.events(shard))
        return {name: _difference(windows[name, False], windows[name, True]) for name in names}

    async def _window(self, site: Testbed, name: str) -> Window:
        if name == OPERATIONS[0]:
            return await site.measure("cycle", at_once=AT_ONCE, seconds=self.seconds)
        return await site.measure("speak", rate=self.rate, seconds=self.seconds, calls=int(name == OPERATIONS[2]))

    async def _collect(self, site: Testbed) -> list[float]:
        """Return the CPU time of an event in microseconds, for each round."""
        rounds = []
        with TemporaryDirectory(prefix="fleet-bench-") as folder:
            database = Database(database_url(f"sqlite:///{Path(folder) / 'control.db'}"))
            await upgrade(database)
            copies = DeviceCopies(site.store, database)
            await copies.copy_all()
            shards = range(site.store.keys.shards)
            collector = EventCollector(Outbox(site.store), database, copies.refresh, _ignore, shards)
            await collector.begin(1)
            while await collector.step():
                pass
            for _ in range(self.repeats):
                spent = 0.0
                for first in range(0, self.events, _MOST_WAITING):
                    await self._write(site, min(_MOST_WAITING, self.events - first))
                    begun = time.process_time()
                    while await collector.step():
                        pass
                    spent += time.process_time() - begun
                rounds.append(spent / self.events * 1e6)
            await database.close()
        return rounds

    async def _write(self, site: Testbed, count: int) -> None:
        keys = site.store.keys
        pipe = site.store.client.pipeline(transaction=False)
        for number in range(count):
            kind, data = _KINDS[number % len(_KINDS)]
            device = mac(number % self.connected)
            text = json.dumps(data, separators=(",", ":"))
            words = ("XADD", keys.events(keys.shard(device)), "*", "k", kind, "m", device, "d", text)
            pipe.execute_command(*words)
        await site.store.ask(pipe.execute())


def _ignore(_: object) -> None:
    """Take events: nobody follows."""


def _difference(without: Sequence[Window], with_events: Sequence[Window]) -> Difference:
    before, after = ([window.us("all") for window in windows] for windows in (without, with_events))
    return Difference(Spread.of(before), Spread.of(after), 100 * (median(after) / median(before) - 1))
