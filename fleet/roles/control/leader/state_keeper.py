"""Keeps devices in their desired state, on the one process of control that leads."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.job_calls import JobCalls
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.desired_looks import AT_ONCE
from fleet.adapters.sql.desired_rounds import DesiredRounds
from fleet.adapters.sql.event_rows import StoredEvent
from fleet.adapters.sql.job_feed import JobFeed
from fleet.core.desired_state import SETTERS
from fleet.ground.metrics import states as counted
from fleet.roles.control.leader.state_work import Refresh, StateWork

STEP_SECONDS: Final = 0.25
IDLE_SECONDS: Final = 1.0
"""The same while nobody desires anything."""
SWEEP_SECONDS: Final = 1.0
"""From one page of devices that may have connected without an event to the next."""
COUNT_SECONDS: Final = 60.0
_MOST_NOTICED: Final = 50_000
_SETS: Final = frozenset(one.tool for one in SETTERS.values())
_DECODER: Final = msgspec.json.Decoder(dict[str, Any])


class StateKeeper:
    """Works under one lease after the other.

    Args:
        store: Redis.
        database: The registry, with the desired states.
        refresh: Copies devices into the registry.
        poll_hours: From one look at a device to the next; 0 for never.
    """

    def __init__(self, store: Store, database: Database, refresh: Refresh, poll_hours: float) -> None:
        self._store, self._database, self._refresh = store, database, refresh
        self._poll_ms = round(poll_hours * 3_600_000)
        self._connected: set[int] = set()
        self._heard: dict[int, int] = {}
        self._busy = False
        self._under_way = self._drifting = 0

    def notice(self, events: Sequence[StoredEvent]) -> None:
        """Take events that were just stored: which devices connected, and which ones somebody has set.

        What does not fit is found by the sweep, or at the next poll.
        """
        if not self._busy or len(self._connected) + len(self._heard) > _MOST_NOTICED:
            return
        for one in events:
            if one.kind == "device.online":
                self._connected.add(one.mac)
            elif one.kind == "tool.called" and _sets(one.data):
                self._heard[one.mac] = one.at

    async def run(self, fence: str) -> None:
        """Work until cancelled.

        Raises:
            Fenced: There is a newer lease.
            Unavailable: Redis or the database does not answer; call it again.
        """
        active = counted.active.following(lambda: self._under_way)
        with active, counted.drifting.following(lambda: self._drifting):
            work = await self.begin(int(fence))
            clock = asyncio.get_running_loop().time
            swept = counted_at = float("-inf")
            after: int | None = -1
            while True:
                begun = clock()
                if begun - counted_at > COUNT_SECONDS:
                    self._drifting, counted_at = await work.rounds.drifting(), begun
                if self._busy and begun - swept > SWEEP_SECONDS:
                    after, swept = await self.sweep(work, -1 if after is None else after), begun
                more = await self.step(work)
                self._under_way = len(work.under_way)
                pause = STEP_SECONDS if self._busy else IDLE_SECONDS
                await asyncio.sleep(0 if more else max(0.0, begun + pause - clock()))

    async def begin(self, fence: int) -> StateWork:
        """Take over from an earlier lease."""
        feed = JobFeed(self._database, fence)
        await feed.begin()
        calls = JobCalls.of_states(self._store, fence)
        work = StateWork(self._store, DesiredRounds(feed), calls, self._refresh, self._poll_ms)
        await work.begin()
        self._busy = await work.rounds.any()
        return work

    async def step(self, work: StateWork) -> bool:
        """Work once, if anybody desires anything; return whether there is more to do at once."""
        self._busy = await work.rounds.any()
        if not self._busy:
            return False
        connected, self._connected = self._connected, set()
        heard, self._heard = self._heard, {}
        if connected or heard:
            await work.wake(connected, heard)
        return await work.step()

    async def sweep(self, work: StateWork, after: int) -> int | None:
        """Look at a page of devices that wait for their connection; return where the next page begins."""
        connected, following = await work.rounds.connected(after, AT_ONCE)
        if connected:
            await work.wake(connected, {})
        return following


def _sets(data: str) -> bool:
    """Return whether an event tells that a tool set a property of a device."""
    if "set_" not in data:
        return False
    try:
        called = _DECODER.decode(data)
    except ValueError:
        return False
    return called.get("tool") in _SETS and called.get("outcome") == "ok"
