"""Finds devices page by page, in bounded time however many there are.

If one of the query's conditions holds for few devices, an index names these, and the others are checked on them.
Otherwise all conditions are common: the search walks the sort order in windows of some thousand devices. After some
windows it gives what it has, and where it stands: such a page may be short, or even empty, and still have a cursor.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from sqlalchemy import ColumnElement, Connection, Row, Select, func, literal, select, tuple_

from fleet.adapters.sql.agent_names import with_agent_ids
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.device_conditions import Conditions, names_at_most
from fleet.adapters.sql.device_rows import RegisteredDevice, devices_of
from fleet.adapters.sql.schema import DEVICE
from fleet.core.query.conditions import EVERYTHING, Condition

Sort = Literal["mac", "name", "last_seen", "-last_seen"]
SORTS: tuple[Sort, ...] = get_args(Sort)
MOST_ROWS = 500
"""Devices on one page."""
_FEW = 2_000
"""Devices that an index may name so that they are all looked at, and sorted, instead of a walk."""
_SORTED = 6_000
"""The same for orders in which a walk reads each device on its own: it finds few of these devices in a window."""
_WINDOW = 4_000
"""Devices of a window. In the order of MACs they lie side by side; in other orders each is read on its own."""
_SCATTERED = 4
"""How much smaller a window is in other orders."""
_MIDDLE = 30_000
"""Devices that an index may name so that a walk in the order of MACs looks only at these."""
_MOST_WINDOWS = 4
_LONGEST_CURSOR = 1_400
"""Room for a name of 200 characters of four bytes."""


class CursorError(ValueError):
    """A cursor is not one that was given for this query."""


@dataclass(frozen=True, slots=True)
class FoundDevices:
    """A page of devices, and the cursor of the next page; empty at the end."""

    devices: Sequence[RegisteredDevice]
    cursor: str


class DeviceSearch:
    """Searches the devices of one tenant."""

    def __init__(self, database: Database, tenant: int) -> None:
        self._database, self._tenant = database, tenant
        self._conditions = Conditions(tenant, database.is_sqlite)

    async def page(
        self, condition: Condition, *, sort: Sort = "mac", cursor: str = "", limit: int = 50
    ) -> FoundDevices:
        """Return the devices after a cursor that meet a condition.

        Args:
            condition: Of a query.
            sort: The order; `-` means falling.
            cursor: Of the page before; empty for the first one.
            limit: Devices on the page, at most `MOST_ROWS`.

        Raises:
            CursorError: The cursor is damaged, or of another query.
            Unavailable: The database does not answer.
        """
        order = _Order(sort)
        stamp = _stamp(condition, sort, self._tenant)
        after = order.read(cursor, stamp) if cursor else None
        limit = max(1, min(limit, MOST_ROWS))

        def read(connection: Connection) -> tuple[list[RegisteredDevice], _Place | None]:
            wanted = with_agent_ids(connection, self._tenant, condition)
            source = self._small_source(connection, wanted, _FEW if len(order.columns) == 1 else _SORTED)
            if source is not None:
                statement = self._matching(wanted).where(DEVICE.c.mac.in_(source))
                rows, place = _first(connection, order, statement, after, None, limit)
            else:
                walk = self._walk(connection, wanted, order)
                rows, place = walk.rows(connection, after, limit, whole=wanted == EVERYTHING)
            return devices_of(connection, rows), place

        devices, place = await self._database.look(read, tenant=self._tenant)
        return FoundDevices(devices, order.write(place, stamp) if place is not None else "")

    async def count(self, condition: Condition, most: int = 10_000) -> tuple[int, bool]:
        """Return how many devices meet a condition, and whether these are all.

        Counting ends at `most`, and after as many devices as may be looked at in one request.
        """
        return await self._database.look(
            lambda connection: self._count(connection, condition, most), tenant=self._tenant
        )

    def _count(self, connection: Connection, condition: Condition, most: int) -> tuple[int, bool]:
        condition = with_agent_ids(connection, self._tenant, condition)
        found = self._matching(condition, select(literal(1)))
        source, last = self._small_source(connection, condition, _SORTED), None
        if source is not None:
            found = found.where(DEVICE.c.mac.in_(source))
        elif condition != EVERYTHING:
            walk = _Walk(found, _Order("mac"), self._places(_Order("mac")))
            last = walk.end_of_window(connection, None, _MOST_WINDOWS * _WINDOW)
            found = found if last is None else found.where(DEVICE.c.mac <= last[0])
        some = found.limit(most + 1).subquery()
        count = int(connection.execute(select(func.count()).select_from(some)).scalar_one())
        return min(count, most), last is None and count <= most

    def _small_source(self, connection: Connection, condition: Condition, most: int) -> Select[tuple[int]] | None:
        """Return the first statement from an index that names at most so many devices."""
        for source in self._conditions.sources(condition):
            if names_at_most(connection, source, most):
                return source
        return None

    def _walk(self, connection: Connection, condition: Condition, order: "_Order") -> "_Walk":
        """Return the walk over all devices, or in the order of MACs over those that an index names."""
        matching = self._matching(condition)
        source = self._middle_source(connection, condition) if len(order.columns) == 1 else None
        if source is None:
            return _Walk(matching, order, self._places(order))
        named = source.subquery()
        joined = matching.join(named, named.c.mac == DEVICE.c.mac)
        return _Walk(joined, _Order("mac", named.c.mac), select(named.c.mac))

    def _middle_source(self, connection: Connection, condition: Condition) -> Select[Any] | None:
        """Return the statement that names the fewest devices in the order of MACs, if these are not too many."""
        ordered = self._conditions.sources(condition, ordered=True)
        found = [source for source in ordered if names_at_most(connection, source, _MIDDLE)]
        if len(found) < 2:
            return found[0] if found else None
        return min(
            found, key=lambda one: connection.execute(select(func.count()).select_from(one.subquery())).scalar_one()
        )

    def _places(self, order: "_Order") -> Select[Any]:
        return select(*order.columns).where(DEVICE.c.tenant == self._tenant)

    def _matching(self, condition: Condition, columns: "Select[Any] | None" = None) -> Select[Any]:
        statement = select(DEVICE) if columns is None else columns.select_from(DEVICE)
        return statement.where(DEVICE.c.tenant == self._tenant, self._conditions.clause(condition))


_Place = tuple[Any, ...]
"""The values of the sort's columns, the MAC last."""


@dataclass(frozen=True, slots=True)
class _Walk:
    """Looks at devices in windows along a sort order.

    `places` are where to look: at all devices, or at those that an index names.
    """

    matching: Select[Any]
    order: "_Order"
    places: Select[Any]

    def rows(
        self, connection: Connection, after: _Place | None, limit: int, *, whole: bool
    ) -> tuple[list[Row[Any]], _Place | None]:
        """Return some rows, and the place to go on from; None at the end.

        Args:
            connection: To the registry.
            after: Where to begin.
            limit: Rows at most.
            whole: Whether all devices match, so that one window is enough.
        """
        found: list[Row[Any]] = []
        for _ in range(_MOST_WINDOWS):
            size = _WINDOW if len(self.order.columns) == 1 else max(1, _WINDOW // _SCATTERED)
            last = None if whole else self.end_of_window(connection, after, size)
            more, place = _first(connection, self.order, self.matching, after, last, limit - len(found))
            found += more
            if place is not None or last is None:
                return found, place
            after = last
            if len(found) == limit:
                break
        return found, after

    def end_of_window(self, connection: Connection, after: _Place | None, size: int) -> _Place | None:
        """Return the place behind so many others; None if there are fewer."""
        places = self.order.sorted(self.order.within(self.places, after, None))
        row = connection.execute(places.offset(size - 1).limit(1)).one_or_none()
        return None if row is None else tuple(row)


def _first(
    connection: Connection,
    order: "_Order",
    statement: Select[Any],
    after: _Place | None,
    last: _Place | None,
    limit: int,
) -> tuple[list[Row[Any]], _Place | None]:
    """Return the first rows, and the place of the last of them if there are more."""
    statement = order.sorted(order.within(statement, after, last)).limit(limit + 1)
    rows = list(connection.execute(statement).all())
    if len(rows) <= limit:
        return rows, None
    rows.pop()
    return rows, tuple(getattr(rows[-1], column.name) for column in order.columns)


class _Order:
    """A sort order, and cursors in it."""

    def __init__(self, sort: Sort, mac: ColumnElement[Any] = DEVICE.c.mac) -> None:
        name = sort.removeprefix("-")
        self._falling = sort != name
        self.columns = [mac] if name == "mac" else [DEVICE.c[name], mac]

    def sorted(self, statement: Select[Any]) -> Select[Any]:
        return statement.order_by(*(column.desc() if self._falling else column for column in self.columns))

    def within(self, statement: Select[Any], after: _Place | None, last: _Place | None) -> Select[Any]:
        """Leave only the rows behind one place, up to another."""
        keys: Any = tuple_(*self.columns) if len(self.columns) > 1 else self.columns[0]
        if after is not None:
            place = self._values(after)
            statement = statement.where(keys < place if self._falling else keys > place)
        if last is not None:
            place = self._values(last)
            statement = statement.where(keys >= place if self._falling else keys <= place)
        return statement

    def _values(self, place: _Place) -> Any:
        values = [literal(value, column.type) for value, column in zip(place, self.columns, strict=True)]
        return tuple_(*values) if len(values) > 1 else values[0]

    def write(self, place: _Place, stamp: str) -> str:
        return base64.urlsafe_b64encode(json.dumps([stamp, *place], ensure_ascii=False).encode()).decode().rstrip("=")

    def read(self, cursor: str, stamp: str) -> _Place:
        try:
            if len(cursor) > _LONGEST_CURSOR:
                raise CursorError("this cursor is damaged")
            found = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        except (ValueError, binascii.Error) as error:
            raise CursorError("this cursor is damaged") from error
        types = [str, *(column.type.python_type for column in self.columns)]
        if not isinstance(found, list) or [type(value) for value in found] != types:
            raise CursorError("this cursor is damaged")
        if found[0] != stamp:
            raise CursorError("this cursor is of another query or sort order")
        return tuple(found[1:])


def _stamp(condition: Condition, sort: Sort, tenant: int) -> str:
    """Return what ties a cursor to its query.

    Times in the query are left out: `-7d` is another number with each page.
    """
    shape = json.dumps([_shape(condition), sort, tenant])
    return hashlib.sha256(shape.encode()).hexdigest()[:12]


def _shape(condition: Any) -> Any:
    if hasattr(condition, "parts"):
        return [type(condition).__name__, *map(_shape, condition.parts)]
    if hasattr(condition, "part"):
        return ["NOT", _shape(condition.part)]
    if hasattr(condition, "text"):
        return condition.text
    timed = condition.field in ("first_seen", "last_seen", "last_boot")
    return [condition.field, condition.key, condition.operator, "" if timed else condition.value]
