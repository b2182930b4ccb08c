"""The audit log only grows; answers to repeated requests have headers and an owner."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0005"

_KEPT = 30 * 86_400_000
"""Milliseconds: no row that is younger can be deleted."""
_REASON = "the audit log only grows"


def upgrade() -> None:
    op.add_column("idempotency", sa.Column("owner", sa.String(32), nullable=False, server_default=""))
    op.add_column("idempotency", sa.Column("headers", sa.JSON))
    op.create_index("idempotency_tenant_expires", "idempotency", ["tenant", "expires"])
    op.create_table(
        "secret",
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("value", sa.String(128), nullable=False),
        sa.PrimaryKeyConstraint("name", name="secret_pk"),
    )
    op.create_index("audit_at", "audit", ["at"])
    if op.get_bind().dialect.name == "postgresql":
        _postgresql()
    else:
        _sqlite()


def _postgresql() -> None:
    op.execute(
        "CREATE FUNCTION audit_only_grows() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF TG_OP = 'DELETE' THEN IF OLD.at < extract(epoch FROM clock_timestamp()) * 1000 - {_KEPT} "
        f"THEN RETURN OLD; END IF; END IF; RAISE EXCEPTION '{_REASON}'; END $$"
    )
    rows = "BEFORE UPDATE OR DELETE ON audit FOR EACH ROW"
    op.execute(f"CREATE TRIGGER audit_only_grows {rows} EXECUTE FUNCTION audit_only_grows()")
    whole = "BEFORE TRUNCATE ON audit FOR EACH STATEMENT"
    op.execute(f"CREATE TRIGGER audit_is_not_emptied {whole} EXECUTE FUNCTION audit_only_grows()")


def _sqlite() -> None:
    refuse = f"BEGIN SELECT RAISE(ABORT, '{_REASON}'); END"
    op.execute(f"CREATE TRIGGER audit_update BEFORE UPDATE ON audit {refuse}")
    now = "CAST(strftime('%s', 'now') AS INTEGER) * 1000"
    op.execute(f"CREATE TRIGGER audit_delete BEFORE DELETE ON audit WHEN old.at >= {now} - {_KEPT} {refuse}")
