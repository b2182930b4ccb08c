"""Counts devices by the values of a field, for instance how many there are of each board.

With a query the count ends at a limit, and says so. The counts of many devices are kept for ten seconds.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal, get_args

from sqlalchemy import ColumnElement, Connection, Select, and_, func, select, text

from fleet.adapters.sql.agent_names import count_agents, with_agent_ids
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.device_conditions import Conditions, names_at_most
from fleet.adapters.sql.schema import DEVICE, DEVICE_TAG, LISTED_TOOL
from fleet.core.query.conditions import EVERYTHING, Condition

CountedField = Literal["board", "firmware", "online", "state", "agent", "language", "key", "tool"]
COUNTED_FIELDS: tuple[CountedField, ...] = get_args(CountedField)
MOST_VALUES = 100
"""Values of a field that are given, the most frequent ones."""
_MOST_DEVICES = 12_000
"""Devices that are looked at for a count with a query."""
_NAMED = 6_000
"""Devices that an index may name so that all of them are counted: each is read on its own."""
_LARGE = 20_000
_KEPT_SECONDS = 10.0
_MOST_KEPT = 256


@dataclass(frozen=True, slots=True)
class ValueCounts:
    """How many devices have each value, the most frequent ones first; `complete` is False if counting ended early."""

    values: Mapping[str, int]
    complete: bool


_Key = tuple[int, str, Condition]
"""Tenant, field, which devices."""


class DeviceCounts:
    """Counts the devices of all tenants.

    Args:
        database: The registry.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: OrderedDict[_Key, tuple[float, ValueCounts]] = OrderedDict()
        self._counting = asyncio.Lock()

    async def by(self, tenant: int, field: str, condition: Condition = EVERYTHING) -> ValueCounts:
        """Return the counts by a field of `COUNTED_FIELDS`, or by a tag (`tag.site`).

        Raises:
            Unavailable: The database does not answer.
        """
        key, now = (tenant, field, condition), asyncio.get_running_loop().time()
        at, kept = self._kept.get(key, (float("-inf"), None))
        if kept is not None and now - at < _KEPT_SECONDS:
            return kept
        async with self._counting if condition == EVERYTHING else nullcontext():  # Two that ask at once need one count.
            at, again = self._kept.get(key, (float("-inf"), None))
            if again is not None and at > now:
                return again
            counts = await self._database.look(lambda connection: self._count(connection, *key), tenant=tenant)
            if not counts.complete or sum(counts.values.values()) > _LARGE:
                self._keep(key, counts)
        return counts

    def _keep(self, key: _Key, counts: ValueCounts) -> None:
        self._kept[key] = asyncio.get_running_loop().time(), counts
        self._kept.move_to_end(key)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)

    def _count(self, connection: Connection, tenant: int, field: str, condition: Condition) -> ValueCounts:
        some, complete = None, True
        if condition != EVERYTHING:
            some, complete = self._some(connection, tenant, condition)
        statement = _grouped(tenant, field, some).order_by(text("2 DESC")).limit(MOST_VALUES)
        found = connection.execute(statement).all()
        return ValueCounts({_name(value): int(count) for value, count in found}, complete)

    def _some(self, connection: Connection, tenant: int, condition: Condition) -> tuple[ColumnElement[bool], bool]:
        """Return a condition of the first devices that meet another one, and whether these are all."""
        condition = with_agent_ids(connection, tenant, condition)
        conditions = Conditions(tenant, self._database.is_sqlite)
        clause = conditions.clause(condition)
        for source in conditions.sources(condition):
            if names_at_most(connection, source, _NAMED):
                return and_(clause, DEVICE.c.mac.in_(source)), True
        macs = select(DEVICE.c.mac).where(DEVICE.c.tenant == tenant).order_by(DEVICE.c.mac)
        last = connection.execute(macs.offset(_MOST_DEVICES).limit(1)).scalar()
        if last is None:
            return clause, True
        for source in conditions.sources(condition, ordered=True):
            if DEVICE not in source.get_final_froms():
                # The index of a tag names its devices among the first ones.
                return and_(clause, DEVICE.c.mac.in_(source.where(source.selected_columns[0] < last))), False
        return and_(clause, DEVICE.c.mac < last), False


def _grouped(tenant: int, field: str, some: ColumnElement[bool] | None) -> Select[Any]:
    within = [DEVICE.c.tenant == tenant, *([] if some is None else [some])]
    if field == "tool":
        return _tools(within)
    if not field.startswith("tag."):
        column = DEVICE.c[field]
        # With its number, firmware is counted from the index alone.
        groups = [DEVICE.c.firmware_number] if field == "firmware" else []
        found = select(column, func.count()).where(*within).group_by(*groups, column)
        return count_agents(found, tenant) if field == "agent" else found
    key = field.removeprefix("tag.")
    statement = select(DEVICE_TAG.c.value, func.count()).where(DEVICE_TAG.c.tenant == tenant, DEVICE_TAG.c.key == key)
    statement = statement.group_by(DEVICE_TAG.c.value)
    return statement if some is None else statement.where(DEVICE_TAG.c.mac.in_(select(DEVICE.c.mac).where(*within)))


def _tools(within: Sequence[ColumnElement[bool]]) -> Select[Any]:
    """Count devices by their lists first: these are few."""
    lists = select(DEVICE.c.tool_list, func.count().label("devices")).where(*within)
    found = lists.group_by(DEVICE.c.tool_list).subquery()
    return (
        select(LISTED_TOOL.c.tool, func.sum(found.c.devices))
        .join(found, found.c.tool_list == LISTED_TOOL.c.list)
        .group_by(LISTED_TOOL.c.tool)
    )


def _name(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
