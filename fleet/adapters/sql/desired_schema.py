"""The table of desired states, and how properties stand in it. Times are milliseconds since 1970."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from sqlalchemy import JSON, BigInteger, Boolean, Column, ForeignKey, Index, Integer, Table, text
from sqlalchemy.sql.expression import false

from fleet.adapters.sql.history_schema import KEY
from fleet.adapters.sql.schema import METADATA
from fleet.core.desired_state import DesiredProperty, Properties

NEVER: Final = 2**62
"""The due time of a device that waits for its connection."""
RESTING: Final = NEVER + 1
"""The same of one of which nothing is to be done until it connects again."""

# One row for a device of which somebody desires something.
DESIRED_STATE = Table(
    "desired_state",
    METADATA,
    Column("mac", KEY, ForeignKey("device.mac", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("tenant", Integer, ForeignKey("tenant.id"), nullable=False),
    # Rises with each change that a person makes.
    Column("version", Integer, nullable=False),
    Column("properties", JSON, nullable=False),
    # What the device told last, and when.
    Column("reported", JSON, nullable=False),
    Column("reported_at", BigInteger, nullable=False),
    Column("drift", Boolean, nullable=False, server_default=false()),
    # The newest round, when it began (0: it is over), and its calls with their results.
    Column("round", BigInteger, nullable=False),
    Column("since", BigInteger, nullable=False),
    Column("calls", JSON, nullable=False),
    # When the device is looked at again; while a round is under way: when it is given up.
    Column("due", BigInteger, nullable=False),
    Index("desired_state_due", "due", "mac"),
    Index("desired_state_drift", "tenant", "mac", sqlite_where=text("drift"), postgresql_where=text("drift")),
)

_DEFAULTS: Final[Mapping[str, Any]] = {one.name: one.default for one in fields(DesiredProperty) if one.name != "value"}


def stored(properties: Properties) -> dict[str, Any]:
    """Return properties as the table keeps them, without what is as usual."""
    return {name: _stored(one) for name, one in properties.items()}


def properties_of(kept: Mapping[str, Any]) -> dict[str, DesiredProperty]:
    """Return the properties that a row keeps."""
    known = {one.name for one in fields(DesiredProperty)}
    return {
        name: DesiredProperty(**{field: value for field, value in one.items() if field in known})
        for name, one in kept.items()
    }


def _stored(one: DesiredProperty) -> dict[str, Any]:
    values = {name: getattr(one, name) for name in _DEFAULTS}
    values["corrections"] = tuple(values["corrections"])
    return {"value": one.value, **{name: value for name, value in values.items() if value != _DEFAULTS[name]}}
