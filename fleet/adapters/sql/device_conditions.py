"""Translates a query (`fleet.core.query`) into conditions of SQL.

Each condition is true or false, never unknown: so `NOT firmware<2.5` also finds devices without a known version.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    exists,
    false,
    literal_column,
    not_,
    or_,
    select,
    text,
    true,
)

from fleet.adapters.sql.agent_names import ONE_OF, agent_meets
from fleet.adapters.sql.desired_schema import DESIRED_STATE
from fleet.adapters.sql.mac_numbers import mac_number
from fleet.adapters.sql.schema import DEVICE, DEVICE_TAG, GROUP, GROUP_MEMBER, LISTED_TOOL
from fleet.adapters.sql.text_conditions import Clause, escaped, text_meets
from fleet.core.query.conditions import AllOf, AnyOf, Comparison, Condition, FreeText, Negation

_SHORTEST_INDEXED = 3
"""Letters of a word that an index of three characters finds."""
_HEX = re.compile(r"[0-9a-f]{2}(?:[:-]?[0-9a-f]{2}){0,5}[:-]?")
_ORDER: Mapping[str, Callable[[ColumnElement[int], int], Clause]] = {
    "=": lambda column, value: column == value,
    "<": lambda column, value: column < value,
    "<=": lambda column, value: column <= value,
    ">": lambda column, value: column > value,
    ">=": lambda column, value: column >= value,
}
_TEXTS = ("name", "notes", "board", "serial", "language", "key", "state")
_INDEXED_TEXTS = ("name", "board", "state")
_NUMBERS = {"firmware": "firmware_number"}


@dataclass(frozen=True, slots=True)
class Conditions:
    """Builds the conditions of one tenant for one kind of database."""

    tenant: int
    sqlite: bool

    def clause(self, condition: Condition) -> Clause:
        """Return a condition of a row of `device`, for statements that say in another way which rows to look at."""
        if isinstance(condition, AllOf):
            return and_(true(), *map(self.clause, condition.parts))
        if isinstance(condition, AnyOf):
            return or_(false(), *map(self.clause, condition.parts))
        if isinstance(condition, Negation):
            return not_(self.clause(condition.part))
        if isinstance(condition, FreeText):
            return DEVICE.c.search.like(f"%{escaped(needle(condition.text))}%", escape="\\")
        if condition.operator == "!=":
            return not_(self._compared(condition, "="))
        return self._compared(condition, condition.operator)

    def sources(self, condition: Condition, *, ordered: bool = False) -> Iterator[Select[tuple[int]]]:
        """Yield statements that give a superset of the MACs, each from an index.

        Only conditions that all devices found must meet are used. There are none for a query such as `NOT online`, nor
        for one of an agent before `with_agent_ids`.

        Args:
            condition: Of a query.
            ordered: Whether only to yield those whose index has each MAC once, in the order of MACs.
        """
        for part in condition.parts if isinstance(condition, AllOf) else (condition,):
            source = None if ordered and not _is_ordered(part) else self._source(part)
            if source is not None:
                yield source

    def _source(self, part: Condition) -> Select[tuple[int]] | None:
        if isinstance(part, FreeText):
            return self._containing(needle(part.text))
        if not isinstance(part, Comparison) or part.operator == "!=":
            return None
        if part.field == "drift":
            return self._drifting() if part.operator == "=" and part.value else None
        if part.field in ("tag", "tool", "group"):
            return None if _is_pattern(part) else self._related(part, part.operator)
        indexed = part.operator == "=" and part.field in (*_INDEXED_TEXTS, "mac", "online")
        if indexed or part.operator == ONE_OF or part.field in ("firmware", "last_seen", "last_boot"):
            compared = self._compared(part, part.operator, indexed=True)
            return select(DEVICE.c.mac).where(DEVICE.c.tenant == self.tenant, compared)
        return None

    def _compared(self, condition: Comparison, operator: str, *, indexed: bool = False) -> Clause:
        name, value = condition.field, condition.value
        if name == "tool":
            return and_(DEVICE.c.tool_list.is_not(None), DEVICE.c.tool_list.in_(_lists(str(value), operator)))
        if name in ("tag", "group"):
            related = self._related(condition, operator).subquery()
            return exists().where(related.c.mac == DEVICE.c.mac)
        if name == "mac":
            return _mac(str(value), operator)
        if name == "online":
            return DEVICE.c.online.is_(value)
        if name == "drift":
            drifting = DEVICE.c.mac.in_(self._drifting())
            return drifting if value else not_(drifting)
        if name == "agent":
            return agent_meets(self.tenant, str(value), operator)
        if name in _TEXTS:
            return text_meets(DEVICE.c[name], str(value), operator)
        column = DEVICE.c[_NUMBERS.get(name, name)]
        # A sum hides the column from the indexes: SQLite might choose one of them instead of the order of the pages.
        compared = _ORDER[operator](column if indexed else column + 0, int(value))
        return and_(column.is_not(None), compared) if column.nullable else compared

    def _related(self, condition: Comparison, operator: str) -> Select[tuple[int]]:
        value = str(condition.value)
        if condition.field == "tag":
            found = select(DEVICE_TAG.c.mac).where(DEVICE_TAG.c.tenant == self.tenant)
            if not condition.key:
                return found.where(DEVICE_TAG.c.key == value)
            return found.where(DEVICE_TAG.c.key == condition.key, text_meets(DEVICE_TAG.c.value, value, operator))
        if condition.field == "tool":
            # Without `IS NOT NULL`, which SQLite would take for a range of the index.
            return select(DEVICE.c.mac).where(
                DEVICE.c.tenant == self.tenant, DEVICE.c.tool_list.in_(_lists(value, operator))
            )
        groups = select(GROUP.c.id).where(GROUP.c.tenant == self.tenant, text_meets(GROUP.c.name, value, operator))
        return select(GROUP_MEMBER.c.mac).where(GROUP_MEMBER.c.group.in_(groups))

    def _drifting(self) -> Select[tuple[int]]:
        return select(DESIRED_STATE.c.mac).where(DESIRED_STATE.c.tenant == self.tenant, DESIRED_STATE.c.drift)

    def _containing(self, characters: str) -> Select[tuple[int]] | None:
        if len(characters) < _SHORTEST_INDEXED:
            return None
        if not self.sqlite:
            return select(DEVICE.c.mac).where(
                DEVICE.c.tenant == self.tenant, DEVICE.c.search.like(f"%{escaped(characters)}%", escape="\\")
            )
        # FTS5 reads a text in quotes as characters in their order; a quote inside is doubled. It knows no tenants: the
        # other conditions do.
        phrase = '"' + characters.replace('"', '""') + '"'
        return (
            select(literal_column("rowid").label("mac"))
            .select_from(text("device_search"))
            .where(text("device_search MATCH :phrase").bindparams(phrase=phrase))
        )


def names_at_most(connection: Connection, source: Select[tuple[int]], most: int) -> bool:
    """Return whether a statement of `Conditions.sources` gives at most so many MACs; no more of its index is read."""
    return connection.execute(source.offset(most).limit(1)).first() is None


def _lists(tool: str, operator: str) -> Select[tuple[int]]:
    return select(LISTED_TOOL.c.list).where(text_meets(LISTED_TOOL.c.tool, tool, operator))


def needle(word: str) -> str:
    """Return what is looked for in `device.search`: small characters, and MACs or parts of them without separators."""
    small = word.casefold()
    return re.sub("[:-]", "", small) if (":" in small or "-" in small) and _HEX.fullmatch(small) else small


def search_text(mac: int, name: str, serial: str, notes: str) -> str:
    """Return the value of `device.search`."""
    return "\n".join(part.casefold() for part in (name, f"{mac:012x}", serial, notes) if part)


def _is_ordered(part: Condition) -> bool:
    if not isinstance(part, Comparison) or part.operator != "=":
        return isinstance(part, Comparison) and part.operator == ONE_OF and "," not in str(part.value)
    return part.field in (*_INDEXED_TEXTS, "online") or (part.field == "tag" and bool(part.key))


def _is_pattern(condition: Comparison) -> bool:
    return condition.operator == ":" and bool(condition.key or condition.field != "tag")


def _mac(value: str, operator: str) -> Clause:
    digits = re.sub("[:-]", "", value.lower())
    if operator == "=":
        return DEVICE.c.mac == mac_number(digits) if re.fullmatch("[0-9a-f]{12}", digits) else false()
    prefix = digits.rstrip("*")
    if not re.fullmatch("[0-9a-f]{0,12}", prefix):
        return false()
    first, last = prefix.ljust(12, "0"), prefix.ljust(12, "f")
    return DEVICE.c.mac.between(int(first, 16), int(last, 16))
