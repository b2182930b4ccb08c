"""Alerts, and since when a job has its state."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _alerts()
    _subjects()
    op.create_table(
        "alert_rule",
        _column("tenant", sa.Integer()),
        _column("rule", sa.String(16)),
        _column("enabled", sa.Boolean()),
        _column("thresholds", sa.JSON()),
        sa.PrimaryKeyConstraint("tenant", "rule", name="alert_rule_pk"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="alert_rule_tenant_fk"),
    )
    op.create_table(
        "alert_calls",
        _column("tenant", sa.Integer()),
        _column("tool", sa.String(128)),
        *(_column(name, sa.Integer()) for name in ("minute", "total", "failed")),
        sa.PrimaryKeyConstraint("tenant", "tool", "minute", name="alert_calls_pk"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="alert_calls_tenant_fk"),
        sqlite_with_rowid=False,
    )
    op.create_index("alert_calls_minute", "alert_calls", ["minute"])
    place = op.create_table(
        "alert_place",
        sa.Column("id", sa.SmallInteger, nullable=False, autoincrement=False),
        _column("event", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="alert_place_pk"),
    )
    op.bulk_insert(place, [{"id": 1, "event": -1}])
    op.add_column("job", sa.Column("since", sa.BigInteger, nullable=False, server_default="0"))


def _column(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


def _alerts() -> None:
    op.create_table(
        "alert",
        sa.Column("id", _KEY, nullable=False),
        _column("tenant", sa.Integer()),
        _column("rule", sa.String(16)),
        _column("opened", sa.BigInteger()),
        sa.Column("closed", sa.BigInteger),
        _column("closed_by", sa.String(100)),
        _column("announced", sa.Boolean()),
        sa.PrimaryKeyConstraint("id", name="alert_pk"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="alert_tenant_fk"),
    )
    op.create_index("alert_tenant_id", "alert", ["tenant", "id"])
    is_open = sa.text("closed IS NULL")
    op.create_index("alert_open", "alert", ["tenant", "rule", "id"], sqlite_where=is_open, postgresql_where=is_open)
    unannounced = sa.text("closed IS NOT NULL AND NOT announced")
    op.create_index("alert_unannounced", "alert", ["id"], sqlite_where=unannounced, postgresql_where=unannounced)
    op.execute("INSERT INTO given_number (name, last) VALUES ('alert', 0)")
    if op.get_bind().dialect.name == "sqlite":
        note = "UPDATE given_number SET last = max(last, old.id) WHERE name = 'alert'"
        op.execute(f"CREATE TRIGGER alert_number AFTER DELETE ON alert BEGIN {note}; END")


def _subjects() -> None:
    op.create_table(
        "alert_subject",
        _column("alert", _KEY),
        _column("mac", _KEY),
        _column("name", sa.String(128)),
        _column("tenant", sa.Integer()),
        _column("rule", sa.String(16)),
        _column("since", sa.BigInteger()),
        sa.Column("until", sa.BigInteger),
        sa.Column("over", sa.BigInteger),
        _column("text", sa.String(300)),
        sa.PrimaryKeyConstraint("alert", "mac", "name", name="alert_subject_pk"),
        sa.ForeignKeyConstraint(["alert"], ["alert.id"], name="alert_subject_alert_fk", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="alert_subject_tenant_fk"),
        sqlite_with_rowid=False,
    )
    present: dict[str, Any] = {"sqlite_where": sa.text("over IS NULL"), "postgresql_where": sa.text("over IS NULL")}
    key = ["tenant", "rule", "mac", "name"]
    op.create_index("alert_subject_present", "alert_subject", key, unique=True, **present)
    op.create_index("alert_subject_until", "alert_subject", ["until"], **present)
    op.create_index("alert_subject_mac", "alert_subject", ["mac"])
