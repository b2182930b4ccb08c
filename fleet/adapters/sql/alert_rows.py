"""Alerts and their rules, as people read and change them; the leader opens and closes alerts (`alert_writes`)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import Connection, CursorResult, delete, func, select, update

from fleet.adapters.sql.alert_schema import ALERT, ALERT_PLACE, ALERT_RULE, ALERT_SUBJECT
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.schema import TENANT
from fleet.adapters.sql.transaction import Sql
from fleet.adapters.sql.upserts import insert_or_replace
from fleet.core.alert_rules import RuleTerms, terms_of
from fleet.core.alert_signs import Rules, Subject
from fleet.wire.alert_names import ALERT_RULES, AlertRule

_A, _S = ALERT.c, ALERT_SUBJECT.c
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class AlertRow:
    """An alert. Times are milliseconds since 1970; `closed_by` is empty if it closed by itself, or is open."""

    id: int
    rule: AlertRule
    opened: int
    closed: int | None
    closed_by: str
    subjects: int
    """How many ever were part of it."""
    present: int
    """How many still break the rule."""
    text: str
    """Of the first one."""


@dataclass(frozen=True, slots=True)
class SubjectRow:
    """A device of an alert, or with MAC 0 a tool or job; `over` is when it did not break the rule any more."""

    mac: int
    name: str
    since: int
    over: int | None
    text: str


class AlertRows:
    """The alerts and rules of one tenant. All methods raise `Unavailable` while the database does not answer.

    Args:
        sql: The database, or a transaction.
        tenant: Whose alerts.
    """

    def __init__(self, sql: Sql, tenant: int) -> None:
        self._sql, self._tenant = sql, tenant

    async def page(self, before: int, limit: int, *, only_open: bool) -> list[AlertRow]:
        """Return alerts with ids below `before`, the newest first."""
        found = select(ALERT).where(_A.tenant == self._tenant, _A.id < before)
        if only_open:
            found = found.where(_A.closed.is_(None))
        ordered = found.order_by(_A.id.desc()).limit(limit)
        async with self._sql.reading() as connection:
            return await connection.run_sync(lambda one: [_alert(one, row) for row in one.execute(ordered).all()])

    async def read(self, alert: int) -> AlertRow | None:
        """Return an alert; None if this tenant has no such alert."""
        found = select(ALERT).where(_A.tenant == self._tenant, _A.id == alert)
        async with self._sql.reading() as connection:
            row = (await connection.execute(found)).one_or_none()
            return None if row is None else await connection.run_sync(_alert, row)

    async def subjects(self, alert: int, after: tuple[int, str], limit: int) -> list[SubjectRow]:
        """Return subjects of an alert of this tenant, in the order of MAC and name."""
        found = select(_S.mac, _S.name, _S.since, _S.over, _S.text).where(_S.alert == alert, _S.tenant == self._tenant)
        mac, name = after
        found = found.where((_S.mac > mac) | ((_S.mac == mac) & (_S.name > name)))
        async with self._sql.reading() as connection:
            rows = await connection.execute(found.order_by(_S.mac, _S.name).limit(limit))
            return [SubjectRow(*row) for row in rows]

    async def close(self, alert: int, who: str, now: int) -> bool:
        """Close an alert that is open; return whether it was. Its subjects open no other one until they are over."""
        of = _A.tenant == self._tenant, _A.id == alert, _A.closed.is_(None)
        async with self._sql.writing() as connection:
            done = await connection.execute(update(ALERT).where(*of).values(closed=now, closed_by=who[:100]))
            return cast("CursorResult[Any]", done).rowcount > 0

    async def rules(self) -> Rules:
        """Return the rules."""
        found = select(ALERT_RULE).where(ALERT_RULE.c.tenant == self._tenant)
        async with self._sql.reading() as connection:
            return _rules((await connection.execute(found)).all())

    async def change_rule(self, rule: AlertRule, terms: RuleTerms) -> None:
        """Set a rule."""
        row = {"tenant": self._tenant, "rule": rule, "enabled": terms.enabled, "thresholds": dict(terms.thresholds)}
        async with self._sql.writing() as connection:
            await connection.execute(insert_or_replace(ALERT_RULE, is_sqlite=self._sql.is_sqlite), [row])


class AlertSite:
    """What the leader reads of the alerts of all tenants. All methods raise `Unavailable` without the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def place(self) -> int:
        """Return the event up to which rules were looked at; -1 before the first look."""
        found = select(ALERT_PLACE.c.event)
        return await self._database.look(lambda connection: int(connection.execute(found).scalar_one()))

    async def rules(self) -> Mapping[int, Rules]:
        """Return the rules of every tenant."""

        def read(connection: Connection) -> dict[int, Rules]:
            stored = dict[int, list[Any]]()
            for row in connection.execute(select(ALERT_RULE)):
                stored.setdefault(row.tenant, []).append(row)
            tenants = connection.execute(select(TENANT.c.id)).scalars()
            return {tenant: _rules(stored.get(tenant, ())) for tenant in tenants}

        return await self._database.look(read)

    async def open(self) -> Counter[AlertRule]:
        """Return how many alerts of each rule are open."""
        counted = select(_A.rule, func.count().label("n")).where(_A.closed.is_(None)).group_by(_A.rule)

        def read(connection: Connection) -> Counter[AlertRule]:
            return Counter({row.rule: row.n for row in connection.execute(counted)})

        return await self._database.look(read)

    async def unannounced(self) -> bool:
        """Return whether alerts closed whose event was not stored yet."""
        found = select(_A.id).where(_A.closed.is_not(None), _A.announced.is_(False)).limit(1)
        return await self._database.look(lambda connection: connection.execute(found).first() is not None)

    async def present(self, tenant: int, rule: AlertRule) -> list[Subject]:
        """Return who breaks a rule that has no devices."""
        found = select(_S.mac, _S.name).where(_S.tenant == tenant, _S.rule == rule, _S.over.is_(None))

        def read(connection: Connection) -> list[Subject]:
            return [Subject(tenant, rule, mac, name) for mac, name in connection.execute(found)]

        return await self._database.look(read)

    async def forget(self, before: int) -> int:
        """Delete some alerts that closed before a time and that nobody is left in; return how many."""
        left = select(_S.alert).where(_S.alert == _A.id, _S.over.is_(None)).exists()
        old = select(_A.id).where(_A.closed < before, ~left).order_by(_A.id).limit(_AT_ONCE)
        async with self._database.writing() as connection:
            ids = list((await connection.execute(old)).scalars())
            if ids:
                await connection.execute(delete(ALERT).where(_A.id.in_(ids)))
        return len(ids)


def _rules(rows: Sequence[Any]) -> Rules:
    stored = {row.rule: row for row in rows}
    return {
        rule: terms_of(rule, stored[rule].thresholds, enabled=stored[rule].enabled)
        if rule in stored
        else terms_of(rule, {})
        for rule in ALERT_RULES
    }


def _alert(connection: Connection, row: Any) -> AlertRow:
    of = select(func.count(), func.count(_S.mac).filter(_S.over.is_(None))).where(_S.alert == row.id)
    subjects, present = connection.execute(of).one()
    first = select(_S.text).where(_S.alert == row.id).order_by(_S.since).limit(1)
    text = connection.execute(first).scalar_one_or_none() or ""
    return AlertRow(row.id, row.rule, row.opened, row.closed, row.closed_by, subjects, present, text)
