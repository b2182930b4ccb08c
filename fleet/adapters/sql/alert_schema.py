"""The tables of alerts. Times are milliseconds since 1970."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    SmallInteger,
    String,
    Table,
    text,
)

from fleet.adapters.sql.history_schema import KEY
from fleet.adapters.sql.schema import METADATA

_OPEN, _PRESENT = text("closed IS NULL"), text("over IS NULL")
_UNANNOUNCED = text("closed IS NOT NULL AND NOT announced")

# What a tenant changed of a rule.
ALERT_RULE = Table(
    "alert_rule",
    METADATA,
    Column("tenant", Integer, ForeignKey("tenant.id"), primary_key=True),
    Column("rule", String(16), primary_key=True),
    Column("enabled", Boolean, nullable=False),
    Column("thresholds", JSON, nullable=False),
)

# `closed_by` is empty where the alert closed by itself; `announced`: whether the event of its end was stored.
ALERT = Table(
    "alert",
    METADATA,
    Column("id", KEY, primary_key=True),
    Column("tenant", Integer, ForeignKey("tenant.id"), nullable=False),
    Column("rule", String(16), nullable=False),
    Column("opened", BigInteger, nullable=False),
    Column("closed", BigInteger),
    Column("closed_by", String(100), nullable=False),
    Column("announced", Boolean, nullable=False),
    Index("alert_tenant_id", "tenant", "id"),
    Index("alert_open", "tenant", "rule", "id", sqlite_where=_OPEN, postgresql_where=_OPEN),
    Index("alert_unannounced", "id", sqlite_where=_UNANNOUNCED, postgresql_where=_UNANNOUNCED),
)

# What broke the rule of an alert: a device, or with MAC 0 a tool or a job by its name. Without `over` it still does,
# also if a person closed the alert: so nothing is announced twice. `until`: when it is over unless it happens again.
ALERT_SUBJECT = Table(
    "alert_subject",
    METADATA,
    Column("alert", KEY, ForeignKey("alert.id", ondelete="CASCADE"), primary_key=True),
    Column("mac", KEY, primary_key=True),
    Column("name", String(128), primary_key=True),
    Column("tenant", Integer, ForeignKey("tenant.id"), nullable=False),
    Column("rule", String(16), nullable=False),
    Column("since", BigInteger, nullable=False),
    Column("until", BigInteger),
    Column("over", BigInteger),
    Column("text", String(300), nullable=False),
    Index(
        "alert_subject_present",
        *("tenant", "rule", "mac", "name"),
        unique=True,
        sqlite_where=_PRESENT,
        postgresql_where=_PRESENT,
    ),
    Index("alert_subject_until", "until", sqlite_where=_PRESENT, postgresql_where=_PRESENT),
    Index("alert_subject_mac", "mac"),
    sqlite_with_rowid=False,
)

# Calls of a tool in a minute since 1970.
ALERT_CALLS = Table(
    "alert_calls",
    METADATA,
    Column("tenant", Integer, ForeignKey("tenant.id"), primary_key=True),
    Column("tool", String(128), primary_key=True),
    Column("minute", Integer, primary_key=True),
    Column("total", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Index("alert_calls_minute", "minute"),
    sqlite_with_rowid=False,
)

# One row: the event up to which rules were looked at; -1 before the first look.
ALERT_PLACE = Table(
    "alert_place",
    METADATA,
    Column("id", SmallInteger, primary_key=True, autoincrement=False),
    Column("event", BigInteger, nullable=False),
)
