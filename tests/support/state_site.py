"""Desired states without devices: the leader's work on them, and owners of all shards with devices that remember."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import insert, update

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.operator_calls import CallState
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.desired_rows import DesiredRows, DesiredState
from fleet.adapters.sql.desired_schema import DESIRED_STATE
from fleet.adapters.sql.mac_numbers import mac_number
from fleet.adapters.sql.schema import LISTED_TOOL, TOOL_LIST
from fleet.core.desired_state import SETTERS, STATUS
from fleet.roles.control.access import milliseconds
from fleet.roles.control.leader.state_keeper import StateKeeper
from fleet.roles.control.leader.state_work import StateWork
from fleet.wire.operator_calls import OperatorCall
from fleet.wire.property_states import PropertyPolicy
from tests.support.job_site import LIMIT, JobSite

ALL_TOOLS = (STATUS, *(one.tool for one in SETTERS.values()), "self.lamp.turn_on")
TOOLS_OF = {name: one.tool for name, one in SETTERS.items()}


@dataclass
class StubDevice:
    """A device that does what it is told, unless it answers otherwise."""

    values: dict[str, Any] = field(default_factory=lambda: {"volume": 70})
    answers: dict[str, tuple[CallState, str] | None] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)

    def answer(self, call: OperatorCall) -> tuple[CallState, str] | None:
        self.asked[call.tool] += 1
        if call.tool in self.answers:
            return self.answers[call.tool]
        if call.tool == STATUS:
            screen = {name: self.values[name] for name in ("brightness", "theme") if name in self.values}
            return "ok", json.dumps({"audio_speaker": {"volume": self.values["volume"]}, "screen": screen})
        for name, tool in TOOLS_OF.items():
            if tool == call.tool:
                self.values[name] = call.arguments[name]
        return "ok", "true"


class StateSite(JobSite):
    """A registry, a Redis, the leader's work on desired states, and owners."""

    def __init__(self, database: Database, store: Store, poll_hours: float = 6.0) -> None:
        super().__init__(database, store)
        self.refreshed: list[str] = []
        self.keeper = StateKeeper(store, database, self._refresh, poll_hours)
        self.stubs: dict[str, StubDevice] = {}
        self.states: StateWork

    async def take_over(self) -> None:
        """Work under a new lease, as another process of control does."""
        self.fence += 1
        self.states = await self.keeper.begin(self.fence)

    async def add_stubs(self, count: int, tools: Iterable[str] = ALL_TOOLS, *, tenant: int = 1) -> list[str]:
        """Add devices that are connected and offer tools."""
        names = list(tools)
        async with self.database.writing() as connection:
            digest = "\n".join(names)[-64:]
            added = insert(TOOL_LIST).values(digest=f"{digest}{len(self.stubs)}"[-64:]).returning(TOOL_LIST.c.id)
            number = (await connection.execute(added)).scalar_one()
            if names:
                await connection.execute(insert(LISTED_TOOL), [{"tool": name, "list": number} for name in names])
        macs = await self.add_devices(count, tenant, tool_list=number)
        self.stubs |= {mac: StubDevice() for mac in macs}
        return macs

    async def desire(
        self,
        mac: str,
        policies: dict[str, PropertyPolicy | None] | None = None,
        version: int | None = None,
        **patch: Any,
    ) -> DesiredState:
        changed = await DesiredRows(self.database, 1).change(
            mac, patch, policies or {}, milliseconds(), version=version
        )
        assert changed is not None
        return changed[1]

    async def state(self, mac: str) -> DesiredState:
        return await DesiredRows(self.database, 1).read(mac)

    async def look_now(self, mac: str) -> None:
        """Let the time of the next look be now."""
        async with self.database.writing() as connection:
            of = DESIRED_STATE.c.mac == mac_number(mac)
            await connection.execute(update(DESIRED_STATE).where(of).values(due=1))

    async def settle(self) -> None:
        """Work until nothing is due and nothing under way."""
        async with asyncio.timeout(LIMIT):
            while True:
                more = await self.keeper.step(self.states)
                answered = await self.answer(lambda call: self.stubs[call.device].answer(call))
                if not more and not answered and not self.states.under_way:
                    return
                await asyncio.sleep(0.001)

    async def _refresh(self, macs: Iterable[str]) -> int:
        self.refreshed += macs
        return 0
