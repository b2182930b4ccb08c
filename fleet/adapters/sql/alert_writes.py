"""Opens and closes alerts, for the one process that has the lease of control, with their events in one transaction."""

from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from sqlalchemy import bindparam, delete, exists, func, insert, not_, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from fleet.adapters.sql.alert_schema import ALERT, ALERT_CALLS, ALERT_PLACE, ALERT_SUBJECT
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.event_rows import add_events, check_lease
from fleet.adapters.sql.given_numbers import new_number
from fleet.adapters.sql.transaction import Transaction
from fleet.adapters.sql.upserts import insert_or_add, insert_or_replace
from fleet.core.alert_signs import Breach, Subject
from fleet.wire.alert_names import DEVICE_RULES, AlertRule

JOIN_MS: Final = 600_000
"""Devices that break a rule so long after an alert of it opened are in the same alert."""
MOST_OPEN: Final = 100
"""Open alerts of a rule in a tenant; from then on the newest one takes what comes."""
MOST_CALLS: Final = 50_000
"""Rows of counted calls of all tenants; beyond it new tools and minutes are not counted."""
_AT_ONCE: Final = 500
_A, _S, _C = ALERT.c, ALERT_SUBJECT.c, ALERT_CALLS.c
_KEY: Final = (_S.tenant, _S.rule, _S.mac, _S.name)


class AlertWrites:
    """The statements of one transaction.

    Args:
        connection: In the transaction.
        fence: Of the lease.
        now: In ms since 1970.
    """

    def __init__(self, connection: AsyncConnection, fence: int, now: int) -> None:
        self._connection, self._fence, self._now = connection, fence, now
        self._sql = Transaction(connection)
        self.opened: Counter[AlertRule] = Counter()

    async def move(self, place: int) -> None:
        """Note the event up to which rules were looked at."""
        await self._connection.execute(update(ALERT_PLACE).values(event=place))

    async def count_calls(self, calls: Mapping[tuple[int, str, int, bool], int]) -> None:
        """Add calls of tools; see `Signs.calls`."""
        rows: dict[tuple[int, str, int], dict[str, int]] = {}
        for (tenant, tool, minute, failed), count in calls.items():
            row = rows.setdefault((tenant, tool, minute), {"total": 0, "failed": 0})
            row["total"] += count
            row["failed"] += count if failed else 0
        counted = select(func.count()).select_from(ALERT_CALLS)
        if rows and (await self._connection.execute(counted)).scalar_one() < MOST_CALLS:
            insertion = insert_or_add(ALERT_CALLS, ("total", "failed"), is_sqlite=self._sql.is_sqlite)
            values = [{"tenant": t, "tool": tool, "minute": m, **row} for (t, tool, m), row in rows.items()]
            await self._connection.execute(insertion, values)

    async def calls(self, tenant: int, tools: Collection[str], minute: int) -> Mapping[str, tuple[int, int]]:
        """Return all and failed calls of tools since a minute."""
        summed = select(_C.tool, func.sum(_C.total), func.sum(_C.failed)).where(_C.tenant == tenant)
        summed = summed.where(_C.tool.in_(tools), _C.minute > minute).group_by(_C.tool)
        return {tool: (int(total), int(failed)) for tool, total, failed in await self._connection.execute(summed)}

    async def forget_calls(self, minute: int) -> None:
        """Delete the counts of calls from before a minute."""
        await self._connection.execute(delete(ALERT_CALLS).where(_C.minute < minute))

    async def begin(self, breaches: Iterable[Breach]) -> None:
        """Note who breaks a rule; open alerts for those who did not do so before."""
        fresh: dict[tuple[int, AlertRule], list[Breach]] = {}
        for some in _parts({one.subject: one for one in breaches}):
            known = await self._present(list(some))
            again = [
                {"t": one.tenant, "r": one.rule, "m": one.mac, "n": one.name, **_values(some[one])} for one in known
            ]
            if again:
                same = [column == bindparam(name) for column, name in zip(_KEY, "trmn", strict=True)]
                values: dict[str, Any] = {"until": bindparam("u"), "text": bindparam("x")}
                await self._connection.execute(
                    update(ALERT_SUBJECT).where(*same, _S.over.is_(None)).values(values), again
                )
            for subject, one in some.items():
                if subject not in known:
                    fresh.setdefault((subject.tenant, subject.rule), []).append(one)
        for (tenant, rule), some_fresh in fresh.items():
            await self._open(tenant, rule, some_fresh)

    async def end(self, subjects: Iterable[Subject]) -> None:
        """Note who does not break a rule any more; close alerts that nobody is left in."""
        touched = set[int]()
        for some in _parts(dict.fromkeys(subjects)):
            ended = update(ALERT_SUBJECT).where(tuple_(*_KEY).in_([_key(one) for one in some]), _S.over.is_(None))
            touched |= set((await self._connection.execute(ended.values(over=self._now).returning(_S.alert))).scalars())
        await self._close(touched)

    async def end_old(self) -> None:
        """End what lasts only a time unless it happens again, and close what nobody is left in."""
        ended = update(ALERT_SUBJECT).where(_S.over.is_(None), _S.until < self._now).values(over=self._now)
        await self._connection.execute(ended)
        await self._close(None)

    async def announce_closed(self) -> None:
        """Tell of the alerts that closed by themselves, or that persons closed."""
        unannounced = _A.closed.is_not(None), _A.announced.is_(False)
        found = (
            update(ALERT).where(*unannounced).values(announced=True).returning(_A.id, _A.tenant, _A.rule, _A.closed_by)
        )
        for row in (await self._connection.execute(found)).all():
            await self._announce(
                "alert.closed", row.tenant, 0, {"alert": row.id, "rule": row.rule, "by": row.closed_by}
            )

    async def end_rule(self, tenant: int, rule: AlertRule) -> None:
        """End all of a rule that was switched off."""
        ended = update(ALERT_SUBJECT).where(_S.tenant == tenant, _S.rule == rule, _S.over.is_(None))
        await self._connection.execute(ended.values(over=self._now))

    async def _present(self, subjects: Sequence[Subject]) -> set[Subject]:
        found = select(*_KEY).where(tuple_(*_KEY).in_([_key(one) for one in subjects]), _S.over.is_(None))
        return {Subject(*row) for row in await self._connection.execute(found)}

    async def _open(self, tenant: int, rule: AlertRule, breaches: Sequence[Breach]) -> None:
        of = _A.tenant == tenant, _A.rule == rule, _A.closed.is_(None)
        opened = select(_A.id, _A.opened).where(*of).order_by(_A.id.desc()).limit(MOST_OPEN)
        rows = list(await self._connection.execute(opened))
        together = rule in DEVICE_RULES
        for some in [list(breaches)] if together else [[one] for one in breaches]:
            joined = rows and (len(rows) >= MOST_OPEN or (together and rows[0].opened >= self._now - JOIN_MS))
            if joined:
                await self._add(int(rows[0].id), some)
                continue
            values = {"tenant": tenant, "rule": rule, "opened": self._now, "closed_by": "", "announced": False}
            made = insert(ALERT).values(**values, **new_number(self._sql, ALERT)).returning(_A.id, _A.opened)
            rows.insert(0, (await self._connection.execute(made)).one())
            await self._add(int(rows[0].id), some)
            self.opened[rule] += 1
            data = {"alert": rows[0].id, "rule": rule, "subjects": len(some), "text": some[0].text}
            await self._announce("alert.opened", tenant, some[0].subject.mac if len(some) == 1 else 0, data)

    async def _add(self, alert: int, breaches: Sequence[Breach]) -> None:
        rows = [
            {
                **{"alert": alert, "mac": one.subject.mac, "name": one.subject.name, "tenant": one.subject.tenant},
                **{"rule": one.subject.rule, "since": self._now, "until": one.until, "over": None},
                "text": _text(one),
            }
            for one in breaches
        ]
        await self._connection.execute(insert_or_replace(ALERT_SUBJECT, is_sqlite=self._sql.is_sqlite), rows)

    async def _close(self, alerts: Collection[int] | None) -> None:
        """Close those of some alerts, or of all, that are open and that nobody is left in."""
        if alerts is not None and not alerts:
            return
        left = exists().where(_S.alert == _A.id, _S.over.is_(None))
        done = update(ALERT).where(_A.closed.is_(None), not_(left))
        if alerts is not None:
            done = done.where(_A.id.in_(sorted(alerts)))
        await self._connection.execute(done.values(closed=self._now))

    async def _announce(self, kind: str, tenant: int, mac: int, data: Mapping[str, Any]) -> None:
        await add_events(self._connection, self._fence, [(tenant, self._now, kind, mac, data)])


@asynccontextmanager
async def alert_writes(database: Database, fence: int, now: int) -> AsyncIterator[AlertWrites]:
    """Give the statements of one transaction under a lease.

    Raises:
        Fenced: There is a newer lease.
        Unavailable: The database does not answer.
    """
    async with database.writing() as connection:
        await check_lease(connection, fence)
        yield AlertWrites(connection, fence, now)


def _parts(items: Mapping[Subject, Any]) -> Iterator[dict[Subject, Any]]:
    pairs = list(items.items())
    return (dict(pairs[at : at + _AT_ONCE]) for at in range(0, len(pairs), _AT_ONCE))


def _key(subject: Subject) -> tuple[int, str, int, str]:
    return subject.tenant, subject.rule, subject.mac, subject.name


def _values(breach: Breach) -> dict[str, Any]:
    return {"u": breach.until, "x": _text(breach)}


def _text(breach: Breach) -> str:
    return breach.text.replace("\0", "")[:300]
