"""Works on desired states under one lease: begins rounds of calls where something is due, and stores their outcomes.

Calls travel as those of jobs do, behind them. Nothing here grows with the fleet: a page of devices at a time, at most
`MOST_UNDER_WAY` rounds, at most `RATE` new ones a second.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.own_state import OwnState
from fleet.adapters.redis.shards.device_looks import DeviceNow
from fleet.adapters.redis.shards.job_calls import JobCalls, JobOutcome
from fleet.adapters.redis.shards.operator_calls import CallState
from fleet.adapters.sql.desired_looks import AT_ONCE, DueDevice, NextLooks, RoundStart, StateOutcome
from fleet.adapters.sql.desired_rounds import DesiredRounds
from fleet.adapters.sql.desired_schema import NEVER
from fleet.adapters.sql.mac_numbers import mac_number, mac_text
from fleet.core.connection_pauses import after_connection
from fleet.core.desired_state import OWN, CallResult, Properties, keep_own, plan
from fleet.core.rollout import Pace
from fleet.ground.metrics import states as counted
from fleet.roles.control.access import milliseconds
from fleet.wire.operator_calls import IN_SESSION, LATE, LOST, NO_OUTCOME, OperatorCall

RATE: Final = 1_000.0
"""Rounds that begin in a second."""
MOST_UNDER_WAY: Final = 4_000
WITHIN_MS: Final = 30_000
"""How long a call may wait for the owner of its shard."""
NO_TOOLS_MS: Final = 60_000
"""When a connected device is looked at again whose tools are not known."""
BUSY: Final = "its shard is busy"
_MOST_LISTS: Final = 2_000
_NAME = re.compile(r"state-(\d{1,18})-(\d{1,3})", re.ASCII)

Refresh = Callable[[Iterable[str]], Awaitable[int]]


def state_call_name(number: int, call: int) -> str:
    """Return the id of a call of a round; its record has the device in its name."""
    return f"state-{number}-{call}"


class StateWork:
    """The work under one lease.

    Args:
        store: Redis.
        rounds: Of the lease.
        calls: Of the lease.
        refresh: Copies devices into the registry.
        poll_ms: From one look at a device of which nothing is to be done to the next; 0 for never.
    """

    def __init__(self, store: Store, rounds: DesiredRounds, calls: JobCalls, refresh: Refresh, poll_ms: int) -> None:
        self.rounds, self._calls, self._own = rounds, calls, OwnState(store)
        self._refresh, self._poll_ms = refresh, poll_ms
        self.under_way: set[int] = set()
        self._heard: dict[int, int] = {}
        """Of devices with a round under way: when a tool that sets something was last called by others."""
        self._lists: dict[int, frozenset[str]] = {}
        self._pace = Pace(RATE, 0.0)

    async def begin(self) -> None:
        """Refuse earlier leases."""
        await self._calls.begin()
        self.under_way = set(await self.rounds.under_way())

    async def step(self) -> bool:
        """Store outcomes, then begin rounds; return whether there is more to do at once."""
        now = milliseconds()
        found = await self._calls.outcomes()
        await self._conclude([one for one in map(_outcome_of, found) if one is not None], now)
        await self._calls.forget(found)
        clock = asyncio.get_running_loop().time()
        most = min(AT_ONCE, self._pace.allowance(clock), MOST_UNDER_WAY - len(self.under_way))
        due = await self.rounds.due(now, most) if most > 0 else []
        await self._end_overdue([one for one in due if one.since], now)
        fresh = [one for one in due if not one.since]
        self._pace.take(len(fresh))
        if fresh:
            await self._start(fresh, now)
        return len(found) >= AT_ONCE // 2 or len(due) == most > 0

    async def wake(self, connected: Collection[int], heard: Mapping[int, int]) -> None:
        """Look soon at devices that connected, and at those that others have set, by MAC with the time of that."""
        now = milliseconds()
        due = {mac: after_connection(now) for mac in connected}
        for mac, at in heard.items():
            if mac in self.under_way:
                self._heard[mac] = at
            else:
                due[mac] = NextLooks(now, 0).soon()
        macs = list(due)
        others = {mac: at for mac, at in heard.items() if mac not in connected}
        for at in range(0, len(macs), AT_ONCE):
            await self.rounds.wake({mac: due[mac] for mac in macs[at : at + AT_ONCE]}, others)

    async def _conclude(self, outcomes: Sequence[StateOutcome], now: int) -> None:
        for at in range(0, len(outcomes), AT_ONCE):
            part = outcomes[at : at + AT_ONCE]
            over, ends = await self.rounds.conclude(part, self._heard, NextLooks(now, self._poll_ms), now)
            self.under_way -= over
            for mac in over:
                self._heard.pop(mac, None)
            for end, count in ends.items():
                counted.rounds.add(end, count=count)

    async def _end_overdue(self, overdue: Sequence[DueDevice], now: int) -> None:
        """End rounds whose outcomes did not come. A call that still waits cannot begin: Redis refuses it."""
        named = [(one, number) for one in overdue for number in one.missing]
        states = [(mac_text(one.mac), state_call_name(one.round, number)) for one, number in named]
        for at in range(0, len(states), AT_ONCE):
            known = await self._calls.states(states[at : at + AT_ONCE])
            pairs = zip(named[at : at + AT_ONCE], known, strict=True)
            await self._conclude([StateOutcome(one.mac, one.round, n, _judged(k), now) for (one, n), k in pairs], now)

    async def _start(self, devices: Sequence[DueDevice], now: int) -> None:
        known = await self._calls.look([mac_text(one.mac) for one in devices])
        own = await self._keep([mac_text(one.mac) for one in devices if _has_own(one.properties)], devices, now)
        looks, starts, unsure = NextLooks(now, self._poll_ms), dict[int, RoundStart](), list[DueDevice]()
        tools = await self._tools({one.mac: one.tools for one in devices if one.tools is not None})
        for one in devices:
            waits = _waits(known[mac_text(one.mac)], looks)
            offered = tools.get(one.mac)
            if waits is None and (offered is None or _lacks(one.properties, offered, now)):
                unsure.append(one)
            kept, written = own.get(one.mac, ({}, {}))
            starts[one.mac] = RoundStart(offered or (), kept, written, waits)
        await self._look_again(unsure, starts, now)
        begun = await self.rounds.begin(starts, looks, now)
        self.under_way |= begun.keys()
        await self._put(begun, now)

    async def _look_again(self, unsure: Sequence[DueDevice], starts: dict[int, RoundStart], now: int) -> None:
        """Read the tools of devices again that seem to lack one: the copy may be older than what they offer."""
        if not unsure:
            return
        await self._refresh([mac_text(one.mac) for one in unsure])
        tools = await self._tools(await self.rounds.tool_lists([one.mac for one in unsure]))
        for one in unsure:
            before, offered = starts[one.mac], tools.get(one.mac)
            due = now + NO_TOOLS_MS if offered is None else None
            starts[one.mac] = RoundStart(offered or (), before.own, before.written, due)

    async def _keep(
        self, macs: Sequence[str], devices: Sequence[DueDevice], now: int
    ) -> dict[int, tuple[Mapping[str, str], Mapping[str, Any]]]:
        """Write what the server keeps for devices, where it should be different; return what was and what is new."""
        kept, wanted = await self._own.read(macs), {mac_text(one.mac): one.properties for one in devices}
        written = {}
        for mac, values in kept.items():
            after, names = keep_own(wanted[mac], values, now)
            written[mac] = {name: str(after[name].value) for name in names}
        await self._own.write({mac: values for mac, values in written.items() if values})
        return {mac_number(mac): (kept[mac], written[mac]) for mac in kept}

    async def _tools(self, lists: Mapping[int, int]) -> dict[int, frozenset[str]]:
        """Return the tools of devices, by the numbers of their lists."""
        for number in set(lists.values()) - self._lists.keys():
            if len(self._lists) >= _MOST_LISTS:
                self._lists.clear()
            self._lists[number] = await self.rounds.tools_of(number)
        return {mac: self._lists[number] for mac, number in lists.items() if number in self._lists}

    async def _put(self, begun: Mapping[int, DueDevice], now: int) -> None:
        calls = [
            OperatorCall(
                device=mac_text(one.mac),
                call=state_call_name(one.round, number),
                tool=call.tool,
                arguments=dict(call.arguments),
                idle=True,
                tenant=one.tenant,
            )
            for one in begun.values()
            for number, call in enumerate(one.calls)
        ]
        for at in range(0, len(calls), AT_ONCE):
            full = await self._calls.put(calls[at : at + AT_ONCE], WITHIN_MS)
            lacking = [_not_sent(one, now) for one in full]
            await self._conclude([one for one in lacking if one is not None], now)


def _has_own(properties: Properties) -> bool:
    return any(name in properties for name in OWN)


def _waits(device: DeviceNow, looks: NextLooks) -> int | None:
    """Return when a device is looked at again that gets no calls now; None if it gets them."""
    if not device.online:
        return NEVER
    return looks.retry(IN_SESSION) if device.session else None


def _lacks(properties: Properties, tools: frozenset[str], now: int) -> bool:
    """Return whether a device lacks a tool for one of its properties."""
    return any(one.state == "unsupported" for one in plan(properties, tools, now).properties.values())


def _outcome_of(found: JobOutcome) -> StateOutcome | None:
    named = _NAME.fullmatch(found.call)
    if named is None:
        return None
    at = int(found.entry.partition("-")[0])
    return StateOutcome(mac_number(found.device), int(named[1]), int(named[2]), _result(found.state, found.text), at)


def _not_sent(call: OperatorCall, now: int) -> StateOutcome | None:
    named = _NAME.fullmatch(call.call)
    result = CallResult("not_sent", BUSY)
    return StateOutcome(mac_number(call.device), int(named[1]), int(named[2]), result, now) if named else None


def _judged(known: tuple[CallState, str] | None) -> CallResult:
    return CallResult("unknown", LOST) if known is None else _result(*known)


def _result(state: CallState, text: str) -> CallResult:
    match state:
        case "queued":
            return CallResult("not_sent", LATE)
        case "sent":
            return CallResult("unknown", NO_OUTCOME)
        case _:
            return CallResult(state, text)
