"""Moves desired states on: rounds of calls, and what became of them. For the one process with the lease of control.

A round is written before its calls are queued, under ids made of its number. What Redis does not know of it any more
is unknown; such a call is made again only if that does no harm (`fleet.core.desired_state`).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, select, true, update

from fleet.adapters.sql.desired_looks import CALL_MS, ROUND_MS, DueDevice, NextLooks, RoundEnd, RoundStart, StateOutcome
from fleet.adapters.sql.desired_schema import DESIRED_STATE, NEVER, RESTING, properties_of, stored
from fleet.adapters.sql.job_feed import JobFeed
from fleet.adapters.sql.schema import DEVICE, LISTED_TOOL
from fleet.core.desired_news import News, news_of
from fleet.core.desired_state import (
    OWN,
    CallResult,
    Properties,
    StateCall,
    conclude,
    is_readable,
    judge,
    keep_own,
    plan,
)

_C = DESIRED_STATE.c


class DesiredRounds:
    """Reads and moves desired states under one lease; see `JobFeed` for what it raises."""

    def __init__(self, feed: JobFeed) -> None:
        self._feed, self._database = feed, feed.database

    async def any(self) -> bool:
        """Return whether anybody desires anything."""
        found = select(_C.mac).limit(1)
        return await self._database.look(lambda connection: connection.execute(found).first() is not None)

    async def under_way(self) -> list[int]:
        """Return the devices with a round under way."""
        found = select(_C.mac).where(_C.due < NEVER, _C.since > 0)
        return await self._database.look(lambda connection: list(connection.execute(found).scalars()))

    async def drifting(self) -> int:
        """Return how many devices report another value than they should."""
        counted = select(func.count()).select_from(DESIRED_STATE).where(_C.drift)
        return await self._database.look(lambda connection: int(connection.execute(counted).scalar_one()))

    async def due(self, now: int, most: int) -> list[DueDevice]:
        """Return devices whose time has come, the longest due first."""
        found = (
            select(DESIRED_STATE, DEVICE.c.tool_list)
            .join(DEVICE, DEVICE.c.mac == _C.mac)
            .where(_C.due <= now)
            .order_by(_C.due, _C.mac)
            .limit(most)
        )
        rows = await self._database.look(lambda connection: list(connection.execute(found)))
        return [
            DueDevice(
                row.mac,
                row.round,
                row.since,
                [_call(one) for one in row.calls],
                [number for number, one in enumerate(row.calls) if "state" not in one],
                properties_of(row.properties),
                row.tool_list,
                row.tenant,
            )
            for row in rows
        ]

    async def tool_lists(self, macs: Collection[int]) -> dict[int, int]:
        """Return the numbers of the tool lists of devices, where they are known."""
        found = select(DEVICE.c.mac, DEVICE.c.tool_list).where(DEVICE.c.mac.in_(macs), DEVICE.c.tool_list.is_not(None))
        return await self._database.look(lambda connection: {row[0]: row[1] for row in connection.execute(found)})

    async def tools_of(self, tool_list: int) -> frozenset[str]:
        """Return the names of a tool list; it never changes."""
        found = select(LISTED_TOOL.c.tool).where(LISTED_TOOL.c.list == tool_list)
        return await self._database.look(lambda connection: frozenset(connection.execute(found).scalars()))

    async def begin(self, starts: Mapping[int, RoundStart], looks: NextLooks, now: int) -> dict[int, DueDevice]:
        """Write down the rounds of some devices, at most `AT_ONCE`, before their calls are queued; return those."""
        begun: dict[int, DueDevice] = {}
        changes, events = [], []
        async with self._feed.writing() as connection:
            rows = await connection.execute(_locked(starts).where(_C.since == 0))
            for row in rows.all():
                start, before = starts[row.mac], properties_of(row.properties)
                after, due = _kept(before, start, now), start.due
                calls: Sequence[StateCall] = ()
                if due is None:
                    planned = plan(after, start.tools, now)
                    after, calls = planned.properties, planned.calls
                number = max(now, row.round + 1)
                if calls:
                    due = now + ROUND_MS + CALL_MS * len(calls)
                    begun[row.mac] = DueDevice(row.mac, number, now, calls, range(len(calls)), after, None, row.tenant)
                elif due is None or _open(after, OWN):
                    due = _next(after, looks)
                changes.append(_change(row.mac, after, due) | _round(number, now if calls else 0, calls))
                shown = {**row.reported, **start.own, **start.written}
                events += _events(row, now, news_of(before, after, shown, shown))
            if changes:
                await connection.execute(_UPDATED, changes)
            await self._feed.note_events(connection, events)
        return begun

    async def conclude(
        self, outcomes: Sequence[StateOutcome], heard: Mapping[int, int], looks: NextLooks, now: int
    ) -> tuple[set[int], Counter[RoundEnd]]:
        """Write outcomes; one that is repeated or outdated changes nothing.

        Args:
            outcomes: At most `AT_ONCE`.
            heard: When a tool that sets something was last called otherwise, by MAC: what was read before is outdated.
            looks: When devices are looked at again.
            now: In ms since 1970.

        Returns:
            The devices whose round is over, and how those ended.
        """
        by_mac: dict[int, list[StateOutcome]] = {}
        for one in outcomes:
            by_mac.setdefault(one.mac, []).append(one)
        over, ends, ended, parts, events = set[int](), Counter[RoundEnd](), [], [], []
        async with self._feed.writing() as connection:
            for row in (await connection.execute(_locked(by_mac).where(_C.since > 0))).all():
                calls = [dict(one) for one in row.calls]
                for one in by_mac[row.mac]:
                    if one.round == row.round and one.call < len(calls):
                        calls[one.call] |= {"state": one.result.state, "text": one.result.text, "at": one.at}
                if not all("state" in one for one in calls):
                    parts.append({"of": row.mac, "calls": calls})
                    continue
                over.add(row.mac)
                before = properties_of(row.properties)
                results = [CallResult(one["state"], one["text"]) for one in calls]
                after, reported = conclude(before, [_call(one) for one in calls], results, now)
                due = _after_round(after, calls, heard.get(row.mac, 0), looks)
                shown = row.reported if reported is None else reported
                at = row.reported_at if reported is None else calls[-1]["at"]
                ended.append(_change(row.mac, after, due) | {"reported": shown, "reported_at": at})
                ends[_end_of(results)] += 1
                events += _events(row, now, news_of(before, after, row.reported, shown))
            if parts:
                await connection.execute(_PARTLY, parts)
            if ended:
                await connection.execute(_ENDED, ended)
            await self._feed.note_events(connection, events)
        return over, ends

    async def wake(self, due: Mapping[int, int], heard: Mapping[int, int]) -> None:
        """Look at some devices at a time, by MAC, unless they are looked at sooner.

        Args:
            due: The times.
            heard: Since when what a device reported is outdated, where that is known: else nothing is done with it.
        """
        there = select(_C.mac, _C.reported_at).where(_C.mac.in_(list(due)), _C.since == 0)
        rows = await self._database.look(lambda connection: list(connection.execute(there)))
        values = [{"of": mac, "at": due[mac]} for mac, at in rows if mac not in heard or heard[mac] > at]
        if values:
            sooner = update(DESIRED_STATE).where(_C.mac == bindparam("of"), _C.since == 0, _C.due > bindparam("at"))
            async with self._feed.writing() as connection:
                await connection.execute(sooner.values(due=bindparam("at")), values)

    async def connected(self, after: int, most: int) -> tuple[list[int], int | None]:
        """Return devices that wait for their connection though the registry has them as connected, page by page.

        The second value is where the next page begins; None at the end.
        """
        page = select(_C.mac).where(_C.due == NEVER, _C.mac > after).order_by(_C.mac).limit(most)

        def read(connection: Connection) -> tuple[list[int], int | None]:
            macs = list(connection.execute(page).scalars())
            online = select(DEVICE.c.mac).where(DEVICE.c.mac.in_(macs), DEVICE.c.online.is_(true()))
            return list(connection.execute(online).scalars()), macs[-1] if len(macs) == most else None

        return await self._database.look(read)


_UPDATED = (
    update(DESIRED_STATE)
    .where(_C.mac == bindparam("of"))
    .values({name: bindparam(name) for name in ("properties", "drift", "due", "round", "since", "calls")})
)
_PARTLY = update(DESIRED_STATE).where(_C.mac == bindparam("of")).values(calls=bindparam("calls"))
_WRITTEN = ("properties", "drift", "due", "reported", "reported_at")
_ENDED = (
    update(DESIRED_STATE)
    .where(_C.mac == bindparam("of"))
    .values({**{name: bindparam(name) for name in _WRITTEN}, "since": 0, "calls": []})
)


def _locked(macs: Collection[int]) -> Any:
    return select(DESIRED_STATE).where(_C.mac.in_(list(macs))).order_by(_C.mac).with_for_update()


def _change(mac: int, after: Properties, due: int) -> dict[str, Any]:
    drift = any(one.state == "drift" for one in after.values())
    return {"of": mac, "properties": stored(after), "drift": drift, "due": due}


def _round(number: int, since: int, calls: Sequence[StateCall]) -> dict[str, Any]:
    kept = [{"p": one.property, "v": one.version, "tool": one.tool, "arguments": dict(one.arguments)} for one in calls]
    return {"round": number, "since": since, "calls": kept}


def _call(kept: Mapping[str, Any]) -> StateCall:
    return StateCall(kept["p"], kept["v"], kept["tool"], kept["arguments"])


def _kept(before: Properties, start: RoundStart, now: int) -> Properties:
    """Return the properties after a look at what the server keeps, and after what it wrote."""
    after, wanted = keep_own(before, start.own, now)
    for name, value in start.written.items():
        if name in wanted and after[name].value == value:
            after[name] = judge(after[name], value, now)
    return after


def _events(row: Row[Any], now: int, news: Iterable[News]) -> list[tuple[int, int, str, int, Mapping[str, Any]]]:
    return [(row.tenant, now, kind, row.mac, data) for kind, data in news]


def _open(after: Properties, names: Iterable[str]) -> bool:
    return any(after[name].open or after[name].correctable for name in names if name in after)


def _next(after: Properties, looks: NextLooks) -> int:
    if _open(after, after):
        return looks.soon()
    return looks.poll() if any(is_readable(name) for name in after) else RESTING


def _after_round(after: Properties, calls: Sequence[Mapping[str, Any]], heard: int, looks: NextLooks) -> int:
    reasons = [one["text"] for one in calls if one["state"] == "not_sent"]
    if reasons:
        return looks.retry(reasons[0])
    if any(one["state"] == "unknown" for one in calls):
        return looks.retry()
    return looks.soon() if heard > calls[-1]["at"] else _next(after, looks)


def _end_of(results: Sequence[CallResult]) -> RoundEnd:
    if any(one.state == "not_sent" for one in results):
        return "not_sent"
    return "unknown" if any(one.state == "unknown" for one in results) else "done"
