"""Control is killed, or its database is away, while devices talk: no event is lost or doubled, and no turn notices."""

import asyncio
import json
import random
import signal
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
from rich.console import Console

from fleet.adapters.sql.open import open_database
from fleet.adapters.sql.token_rows import TokenRows
from fleet.core.permissions import SCOPES
from fleet.roles.control.access import digest_of_token
from fleet.workbench.local_servers.ports import LOOPBACK
from tests.chaos import history
from tests.chaos.members import Ensemble, Member, build, role
from tests.chaos.run import QUIET_SECONDS, Options, Scenery, scenery
from tests.support.ports import free_port

AWAY_SECONDS = 60.0
_TOKEN = "flt_chaos"
_SETTLE_SECONDS = 30.0
_ENDS = ("turn.answered", "turn.failed", "turn.interrupted")


@dataclass(slots=True)
class Follower:
    """A client that follows all events, and connects again whenever the connection ends."""

    port: int
    ids: list[int] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    connections: int = 0

    async def run(self) -> None:
        """Follow until cancelled."""
        async with httpx2.AsyncClient(base_url=f"http://{LOOPBACK}:{self.port}", trust_env=False, timeout=40) as client:
            while True:
                with suppress(httpx2.HTTPError):
                    await self._follow(client)
                await asyncio.sleep(0.1)

    async def _follow(self, client: httpx2.AsyncClient) -> None:
        head = {"Authorization": f"Bearer {_TOKEN}", "Accept": "text/event-stream"}
        head["Last-Event-ID"] = str(self.ids[-1] if self.ids else 0)
        async with client.stream("GET", "/v1/events", headers=head) as answer:
            if answer.status_code != 200:
                return
            self.connections += 1
            kind = ""
            async for line in answer.aiter_lines():
                name, _, value = line.partition(": ")
                if name == "event":
                    kind = value
                elif name == "data" and kind == "gap":
                    self.gaps.append(value)
                elif name == "data":
                    self.ids.append(json.loads(value)["id"])


@dataclass(slots=True)
class Site:
    """What a scenario works with."""

    here: Scenery
    control: Member
    database: Path
    follower: Follower


async def kill_control(options: Options, repeat: int, console: Console) -> int:
    """Kill control again and again; return the exit code."""
    chance = random.Random(options.seed)

    async def strike(site: Site) -> None:
        for number in range(1, repeat + 1):
            # Longer than a lease: otherwise nobody collects between two kills.
            await asyncio.sleep(chance.uniform(0.2, 16.0))
            site.control.send(signal.SIGKILL)
            await asyncio.sleep(chance.uniform(0.1, 2.0))
            site.control.start()
            await asyncio.to_thread(site.control.wait_ready)
            console.print(f"{number}. killed; the client has {len(site.follower.ids)} events")

    return await _hold(options, strike, console)


async def take_sql_away(options: Options, repeat: int, console: Console) -> int:
    """Lock the database for a minute, again and again; return the exit code."""

    async def strike(site: Site) -> None:
        for number in range(1, repeat + 1):
            await asyncio.sleep(5.0)
            with closing(_lock_of(site.database)) as lock:
                await asyncio.to_thread(lock.execute, "BEGIN IMMEDIATE")
                console.print(f"{number}. away for {AWAY_SECONDS:g} s; the client has {len(site.follower.ids)} events")
                await asyncio.sleep(AWAY_SECONDS)
                lock.execute("ROLLBACK")

    return await _hold(options, strike, console)


def _lock_of(database: Path) -> sqlite3.Connection:
    """Return a connection that may be used in other threads: a wait for the lock must not stop the devices."""
    return sqlite3.connect(database, isolation_level=None, timeout=30, check_same_thread=False)


async def _hold(options: Options, strike: Any, console: Console) -> int:
    async with _site(options) as site:
        await site.here.hold_first_turns()
        async with asyncio.TaskGroup() as group:
            following = group.create_task(site.follower.run(), name="follower")
            done = asyncio.Event()
            talks = [group.create_task(_talk(site.here, number, done)) for number in range(len(site.here.people))]
            await strike(site)
            done.set()
            await asyncio.wait(talks)
            await asyncio.sleep(QUIET_SECONDS)
            await _settle(site)
            following.cancel()
        broken = list(_judge(site))
        _tell(site, broken, console)
    return 1 if broken else 0


async def _talk(here: Scenery, number: int, done: asyncio.Event) -> None:
    person = here.people[number]
    while not done.is_set():
        await person.hold()
        await person.rest()


@asynccontextmanager
async def _site(options: Options) -> AsyncIterator[Site]:
    port, made = free_port(), dict[str, Member]()
    data = options.out / "control"
    data.mkdir(parents=True, exist_ok=True)
    path = data / "control.db"

    def make(out: Path, models: str) -> Ensemble:
        settings = {"conversations": "on", "control_port": port, "data_dir": str(data)}
        ensemble = build(out, models, appendfsync=options.appendfsync, **settings)
        made["control"] = role(out, "control", ensemble, settings, port)
        return ensemble

    async with open_database(f"sqlite:///{path}") as database:
        await TokenRows(database).add(1, "chaos", digest_of_token(_TOKEN), SCOPES, 1)
    async with scenery(options, partial(make)) as here:
        control = made["control"]
        try:
            control.start()
            await asyncio.to_thread(control.wait_ready)
            yield Site(here, control, path, Follower(port))
        finally:
            control.discard()


async def _settle(site: Site) -> None:
    """Wait until no more events come."""
    async with asyncio.timeout(4 * _SETTLE_SECONDS):
        last = -1
        while last != len(site.follower.ids):
            last = len(site.follower.ids)
            await asyncio.sleep(QUIET_SECONDS)


def _judge(site: Site) -> Iterator[str]:
    """Yield what was broken."""
    with closing(sqlite3.connect(site.database)) as sql:
        rows = sql.execute("SELECT id, kind, mac, data FROM event ORDER BY id").fetchall()
        (turns,) = sql.execute("SELECT sum(turns) FROM usage_day").fetchone()
        said = sql.execute("SELECT mac, turn FROM conversation_turn").fetchall()
    yield from _judge_ids([row[0] for row in rows], site.follower)
    ends = Counter((mac, json.loads(data)["turn"]) for _, kind, mac, data in rows if kind in _ENDS)
    yield from (f"turn twice: {turn} {count}" for turn, count in ends.items() if count > 1)
    answered = sum(turn.outcome == "answered" for turn in site.here.house.turns)
    if len(ends) < answered:
        yield f"{answered} turns were answered, {len(ends)} have an event"
    if turns != len(ends) or sorted(said) != sorted(ends):
        yield f"{len(ends)} turns ended, usage has {turns}, conversations {len(said)}"
    calls = sum(kind == "tool.called" and json.loads(data)["outcome"] == "ok" for _, kind, _, data in rows)
    executions = len(site.here.house.journal.executions)
    if calls != executions:
        yield f"{executions} tools acted, {calls} events tell of it"
    yield from map(str, history.check_turns(site.here.house.turns))
    yield from map(str, site.here.house.violations)
    yield from (f"not answered: {turn}" for turn in site.here.house.turns if turn.outcome != "answered")


def _judge_ids(stored: list[int], follower: Follower) -> Iterator[str]:
    if stored != list(range(1, len(stored) + 1)):
        yield f"ids have holes or repeat: {len(stored)} events up to {stored[-1:]}"
    if follower.ids != stored:
        yield f"the client has {len(follower.ids)} events, {len(set(follower.ids))} different; stored are {len(stored)}"
    yield from (f"gap: {gap}" for gap in follower.gaps)


def _tell(site: Site, broken: list[str], console: Console) -> None:
    turns = Counter(turn.outcome for turn in site.here.house.turns)
    console.print(f"{len(site.follower.ids)} events over {site.follower.connections} connections; turns: {dict(turns)}")
    for line in broken:
        console.print(f"  {line}", highlight=False, markup=False)
