"""What devices should be set to, and what they report."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.sql.expression import false

revision = "0014"
down_revision = "0013"

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "desired_state",
        sa.Column("mac", _KEY, nullable=False, autoincrement=False),
        sa.Column("tenant", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("properties", sa.JSON, nullable=False),
        sa.Column("reported", sa.JSON, nullable=False),
        sa.Column("reported_at", sa.BigInteger, nullable=False),
        sa.Column("drift", sa.Boolean, nullable=False, server_default=false()),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in ("round", "since")),
        sa.Column("calls", sa.JSON, nullable=False),
        sa.Column("due", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("mac", name="desired_state_pk"),
        sa.ForeignKeyConstraint(["mac"], ["device.mac"], name="desired_state_mac_fk", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="desired_state_tenant_fk"),
    )
    op.create_index("desired_state_due", "desired_state", ["due", "mac"])
    where = sa.text("drift")
    op.create_index(
        "desired_state_drift", "desired_state", ["tenant", "mac"], sqlite_where=where, postgresql_where=where
    )
