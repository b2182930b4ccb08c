"""Single situations, repeated and measured."""

import asyncio
import signal
import statistics
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

import redis.asyncio
from rich.console import Console

from fleet.adapters.redis.keys import Keys
from fleet.ground.settings import Settings
from tests.chaos import history
from tests.chaos.control_killed import kill_control, take_sql_away
from tests.chaos.history import Turn
from tests.chaos.jobs_killed import fail_over_in_jobs, kill_in_jobs
from tests.chaos.members import Member
from tests.chaos.person import Person
from tests.chaos.run import Options, Scenery, scenery

MOST_GAP = 10.0
"""Seconds within which a device must hear the rest of an answer whose worker was killed."""
UNNOTICED = 0.5
"""Seconds of silence between two packets that pass for none: this machine is busy too."""
_PARTS = 8
_PACE = 0.12
_STARTED_SECONDS = 12.0


@dataclass(frozen=True, slots=True)
class Kill:
    """What came of one killed worker: the gap of its device, whether it heard all, the gaps of the other devices."""

    turn: Turn
    gap: float
    whole: bool
    others: list[float]


async def kill_mid_answer(options: Options, repeat: int, console: Console) -> int:
    """Kill the worker of a device in the middle of its answer, again and again; return the exit code."""
    async with scenery(options) as here:
        await here.hold_first_turns()
        kills: list[Kill] = []
        for number in range(1, repeat + 1):
            kill = await _kill_once(here, here.people[number % len(here.people)], nth=2 + number % 4)
            kills.append(kill)
            others = f"others at most {max(kill.others, default=0):.2f} s ({len(kill.others)})"
            console.print(f"{number}. gap {kill.gap:.2f} s, whole: {kill.whole}, {kill.turn.outcome}; {others}")
        broken = [
            *history.check_turns(here.house.turns),
            *history.check_executions(here.house.journal.executions),
            *here.house.violations,
        ]
    return _tell(kills, [str(one) for one in broken], console)


def _tell(kills: list[Kill], broken: list[str], console: Console) -> int:
    gaps, others = [kill.gap for kill in kills], [one for kill in kills for one in kill.others]
    heard = sum(kill.whole for kill in kills)
    console.print(f"gap of the device: median {statistics.median(gaps):.2f} s, max {max(gaps):.2f} s; {heard} whole")
    console.print(f"devices of other workers: {len(others)} answers, longest gap {max(others, default=0.0):.2f} s")
    for line in broken:
        console.print(f"  {line}", highlight=False, markup=False)
    good = heard == len(kills) and max(gaps) <= MOST_GAP and max(others, default=0.0) <= UNNOTICED and not broken
    return 0 if good else 1


async def _kill_once(here: Scenery, person: Person, nth: int) -> Kill:
    """Let all devices hear a long answer, and kill the worker of one of them after its nth sentence."""
    mac = person.device.mac
    owners = await _owners(here)
    order = {"message": "sentence handed over", "nth": nth, "where": {"device": mac}, "signal": int(signal.SIGKILL)}
    for worker in here.ensemble.workers:
        worker.order(order)
    async with asyncio.TaskGroup() as group:
        killing = group.create_task(_restart(here), name="restart the killed")
        turns = {
            one.device.mac: group.create_task(one.hold(more=_PARTS, slow=_PACE), name=f"talk {one.device.mac}")
            for one in here.people
        }
    at = killing.result()
    done = {device: task.result() for device, task in turns.items()}
    others = [history.gap(_around(turn, at)) for device, turn in done.items() if owners[device] != owners[mac]]
    turn = done[mac]
    whole = turn.outcome == "answered" and not list(history.check_turns([turn]))
    return Kill(turn, history.gap(turn.packets), whole, others)


async def _restart(here: Scenery) -> float:
    """Start the worker again some time after it was killed; return when it was killed."""
    fallen: list[Member] = []
    async with asyncio.timeout(60):
        while not fallen:
            fallen = [worker for worker in here.ensemble.workers if not worker.alive]
            await asyncio.sleep(0.01)
    at = here.house.now()
    await asyncio.sleep(_STARTED_SECONDS)
    for worker in fallen:
        worker.start()
    # Its share of the shards must be back before the next one is killed.
    await asyncio.sleep(_STARTED_SECONDS)
    return at


async def _owners(here: Scenery) -> dict[str, str]:
    """Return which worker holds the shard of each device."""
    keys = Keys(Settings.model_fields["shards"].default)
    async with redis.asyncio.Redis.from_url(here.ensemble.redis_url, decode_responses=True) as client:
        found: dict[str, str] = {}
        for person in here.people:
            mac = person.device.mac
            found[mac] = str(await client.hget(keys.own(keys.shard(mac)), "w") or "")
        return found


def _around(turn: Turn, at: float) -> list[float]:
    """Return the packets of a turn if it was spoken when the worker was killed."""
    return turn.packets if turn.packets and turn.packets[0] < at < turn.packets[-1] + MOST_GAP else []


SCENARIOS: dict[str, Callable[[Options, int, Console], Coroutine[None, None, int]]] = {
    "worker-mid-answer": kill_mid_answer,
    "control-killed": kill_control,
    "sql-away": take_sql_away,
    "jobs-killed": kill_in_jobs,
    "jobs-failover": fail_over_in_jobs,
}
