"""The fields of a device that a query may name, and how their values are read."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from fleet.core.query.conditions import Comparison, QueryError
from fleet.core.query.terms import Term

_EQUALITY = ("=", "!=", ":")
_ORDER = ("=", "!=", "<", "<=", ">", ">=")
_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,62}")
_AGO = re.compile(r"-([0-9]{1,6})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_VERSION = re.compile(r"v?(\d{1,6})(?:\.(\d{1,6}))?(?:\.(\d{1,6}))?(?:\.\d{1,6})?", re.ASCII)
_PART_BITS = 20
_MOST_OF_PART = (1 << _PART_BITS) - 1

Reader = Callable[[str, datetime], str | int | bool]


def version_number(text: str) -> int | None:
    """Return a number that orders firmware versions, by their first three parts; None if the text is no version."""
    found = _VERSION.fullmatch(text.strip())
    if found is None:
        return None
    packed = 0
    for part in found.groups():
        packed = packed << _PART_BITS | min(int(part or 0), _MOST_OF_PART)
    return packed


def milliseconds(moment: datetime) -> int:
    """Return a time as stored: milliseconds since 1970."""
    return round(moment.timestamp() * 1000)


def _text(value: str, _: datetime) -> str:
    return value


def _version(value: str, _: datetime) -> int:
    number = version_number(value)
    if number is None:
        raise ValueError("a version like 2.5 or 2.4.1 is expected")
    return number


def _boolean(value: str, _: datetime) -> bool:
    if value not in ("true", "false"):
        raise ValueError("true or false is expected")
    return value == "true"


def _time(value: str, now: datetime) -> int:
    if ago := _AGO.fullmatch(value):
        return milliseconds(now - timedelta(**{_UNITS[ago[2]]: int(ago[1])}))
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        moment = None
    if moment is None:
        raise ValueError("a time like 2026-11-24, 2026-11-24T08:00:00Z or -7d is expected")
    return milliseconds(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class Field:
    """A field: which operators it takes, how a value is read, and whether a key follows (`tag.site`)."""

    read: Reader
    operators: tuple[str, ...]
    keyed: bool = False
    description: str = ""


def _texts(description: str, *, keyed: bool = False) -> Field:
    return Field(_text, _EQUALITY, keyed, description)


DEVICE_FIELDS: Mapping[str, Field] = {
    "mac": _texts("the MAC"),
    "name": _texts("the name that somebody gave the device"),
    "notes": _texts("notes"),
    "board": _texts("the board's type, as the firmware tells it"),
    "serial": _texts("the serial number"),
    "language": _texts("the language of the firmware, as a code"),
    "key": _texts("the id of the key of its password: of its connection, else of its last bootstrap"),
    "agent": _texts("the name of the agent that is assigned to the device, else to its groups; not that of the site"),
    "group": _texts("the name of a static group that the device is in"),
    "tool": _texts("the name of a tool that the device offers"),
    "tag": _texts("a tag: `tag.site=berlin`, or `tag:site` for any value", keyed=True),
    "state": _texts("`registered`, `waiting`, `bound`, `refused` or `revoked`"),
    "firmware": Field(_version, _ORDER, description="the version; `2.5` is equal to `2.5.0`"),
    "online": Field(_boolean, ("=", "!="), description="whether the device is connected; `online` alone is enough"),
    "drift": Field(
        _boolean, ("=", "!="), description="whether it reports another value than it should (`drift` alone)"
    ),
    "first_seen": Field(_time, _ORDER, description="the first bootstrap or connection"),
    "last_seen": Field(_time, _ORDER, description="the last bootstrap or the end of the last connection"),
    "last_boot": Field(_time, _ORDER, description="the last bootstrap"),
}


def comparison(term: Term, fields: Mapping[str, Field], now: datetime) -> Comparison:
    """Return the condition of a comparison's term.

    Raises:
        QueryError: There is no such field, it lacks the operator, or the value is not of its type.
    """
    name, dot, key = term.field.partition(".")
    field = fields.get(name)
    if field is None:
        raise QueryError(f"there is no field {name!r}; fields are {', '.join(fields)}", term.position)
    if dot and not field.keyed:
        raise QueryError(f"{name!r} has no keys", term.position + len(name))
    if dot and not _KEY.fullmatch(key):
        raise QueryError("a key has letters, digits and _ . / -, and at most 63 of them", term.position + len(name) + 1)
    if field.keyed and not dot and term.operator != ":":
        raise QueryError(f"a key is missing: {name}.KEY{term.operator}VALUE, or {name}:KEY", term.position)
    if term.operator not in field.operators:
        raise QueryError(
            f"{name!r} takes {' '.join(field.operators)}, not {term.operator}", term.position + len(term.field)
        )
    try:
        value = field.read(term.text, now)
    except (ValueError, OverflowError) as error:
        reason = "this time is out of range" if isinstance(error, OverflowError) else str(error)
        raise QueryError(reason, term.value_position) from error
    return Comparison(name, term.operator, value, key)
