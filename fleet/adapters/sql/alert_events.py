"""Reads the stored events for the rules of alerts, and the devices and jobs that no event tells of."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, and_, exists, false, func, not_, or_, select

from fleet.adapters.sql.alert_schema import ALERT_SUBJECT
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.desired_schema import DESIRED_STATE
from fleet.adapters.sql.engines import STATEMENT_SECONDS
from fleet.adapters.sql.history_schema import COLLECTOR, EVENT
from fleet.adapters.sql.job_schema import JOB
from fleet.adapters.sql.schema import DEVICE
from fleet.core.alert_signs import KINDS, EventSign, Subject
from fleet.wire.alert_names import AlertRule

AT_ONCE: Final = 5_000
"""Events of one look, and devices of one transaction."""
_SKEW_MS: Final = 60_000
"""Events are in the order in which they were stored; their times differ from it by less."""
_MACS_AT_ONCE: Final = 500
_STANDS: Final = ("approval", "devices")
"""What a running job waits for that may never come."""
_DECODER = msgspec.json.Decoder(dict[str, Any])
_S, _D = ALERT_SUBJECT.c, DESIRED_STATE.c


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Events above a place that rules look at, and the place behind them. `more`: whether others may wait."""

    events: Sequence[EventSign]
    place: int
    more: bool


class AlertEvents:
    """Reads for the rules. All methods raise `Unavailable` while the database does not answer."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def newest(self) -> int:
        """Return the id of the newest event."""
        newest = select(COLLECTOR.c.next)
        return await self._database.look(lambda connection: int(connection.execute(newest).scalar_one()) - 1)

    async def after(self, place: int) -> EventBatch:
        """Return the next events."""
        of = EVENT.c.kind.in_(KINDS)
        columns = EVENT.c.tenant, EVENT.c.at, EVENT.c.kind, EVENT.c.mac, EVENT.c.data

        def read(connection: Connection) -> EventBatch:
            newest = int(connection.execute(select(COLLECTOR.c.next)).scalar_one()) - 1
            end = min(newest, place + AT_ONCE)
            found = select(*columns).where(EVENT.c.id > place, EVENT.c.id <= end, of).order_by(EVENT.c.id)
            events = [EventSign(*row[:4], _read(row.data)) for row in connection.execute(found)]
            return EventBatch(events, end, end < newest)

        return await self._database.look(read)

    async def connections(self, tenant: int, macs: Collection[int], since: int, least: int) -> Mapping[int, int]:
        """Return how often devices connected since a time, of those that did so at least so often."""
        counted = select(EVENT.c.mac, func.count().label("n"))
        counted = counted.where(EVENT.c.tenant == tenant, EVENT.c.kind == "device.online", EVENT.c.at >= since)

        def read(connection: Connection) -> dict[int, int]:
            first = _first_id(connection, since - _SKEW_MS)
            found = dict[int, int]()
            for some in _parts(list(macs)):
                of = counted.where(EVENT.c.mac.in_(some), EVENT.c.id >= first).group_by(EVENT.c.mac)
                found |= {row.mac: row.n for row in connection.execute(of.having(func.count() >= least))}
            return found

        return await self._database.look(read, seconds=STATEMENT_SECONDS)

    async def silent(self, tenant: int, before: int) -> list[int]:
        """Return devices that were seen last before a time, of which no alert tells; at most `AT_ONCE`."""
        d = DEVICE.c
        found = select(d.mac).where(d.tenant == tenant, d.last_seen > 0, d.last_seen < before)
        found = found.where(d.online.is_(False), d.stranger.is_(False), d.state != "revoked")
        return await self._fresh(tenant, "silent", found.order_by(d.last_seen), d.mac)

    async def drifting(self, tenant: int) -> list[int]:
        """Return devices that differ from their desired state, of which no alert tells; at most `AT_ONCE`."""
        found = select(_D.mac).where(_D.tenant == tenant, _D.drift, _D.since == 0)
        return await self._fresh(tenant, "drift", found.order_by(_D.mac), _D.mac)

    async def _fresh(self, tenant: int, rule: AlertRule, found: Select[Any], mac: ColumnElement[int]) -> list[int]:
        known = exists().where(_S.tenant == tenant, _S.rule == rule, _S.mac == mac, _S.over.is_(None))
        fresh = found.where(not_(known)).limit(AT_ONCE)

        def read(connection: Connection) -> list[int]:
            return list(connection.execute(fresh).scalars())

        return await self._database.look(read, seconds=STATEMENT_SECONDS)

    async def gone(self, silent_since: Mapping[int, int]) -> list[Subject]:
        """Return devices whose breach is over though no event said so: they left, are not silent, or do not drift.

        Args:
            silent_since: By tenant the time since which a silent device was not seen.
        """
        d = DEVICE.c
        spoke = [and_(_S.tenant == tenant, d.last_seen >= before) for tenant, before in silent_since.items()]
        back = and_(_S.rule == "silent", or_(d.online.is_(True), d.state == "revoked", *spoke, false()))
        right = and_(_S.rule == "drift", not_(exists().where(_D.mac == _S.mac, _D.drift)))
        found = select(_S.tenant, _S.rule, _S.mac).select_from(ALERT_SUBJECT.outerjoin(DEVICE, d.mac == _S.mac))
        found = found.where(_S.over.is_(None), _S.mac > 0, or_(d.mac.is_(None), d.tenant != _S.tenant, back, right))

        def read(connection: Connection) -> list[Subject]:
            return [Subject(*row) for row in connection.execute(found.limit(AT_ONCE))]

        return await self._database.look(read, seconds=STATEMENT_SECONDS)

    async def waiting_jobs(self, tenant: int, before: int) -> Mapping[str, str]:
        """Return the jobs that wait for somebody since before a time: their numbers, and what they wait for."""
        j = JOB.c
        stands = or_(j.state.in_(("paused", "halted")), and_(j.state == "running", j.reason.in_(_STANDS)))
        found = select(j.id, j.name, j.state, j.reason).where(j.tenant == tenant, stands, j.since > 0, j.since < before)

        def read(connection: Connection) -> dict[str, str]:
            rows = connection.execute(found.order_by(j.id)).all()
            return {str(row.id): f"{row.name} waits: {_wait(row.state, row.reason)}" for row in rows}

        return await self._database.look(read)


def _wait(state: str, reason: str) -> str:
    return reason if state == "running" else state


def _parts(macs: list[int]) -> Iterator[list[int]]:
    return (macs[at : at + _MACS_AT_ONCE] for at in range(0, len(macs), _MACS_AT_ONCE))


def _first_id(connection: Connection, at: int) -> int:
    """Return the id of about the first event since a time, in some twenty looks: there is no index of times."""
    low = connection.execute(select(func.min(EVENT.c.id))).scalar_one() or 0
    high = int(connection.execute(select(COLLECTOR.c.next)).scalar_one())
    while low < high:
        middle = (low + high) // 2
        following = select(EVENT.c.at).where(EVENT.c.id >= middle).order_by(EVENT.c.id).limit(1)
        found = connection.execute(following).scalar_one_or_none()
        if found is None or found >= at:
            high = middle
        else:
            low = middle + 1
    return int(low)


def _read(data: str) -> dict[str, Any]:
    try:
        return _DECODER.decode(data)
    except ValueError:
        return {}
