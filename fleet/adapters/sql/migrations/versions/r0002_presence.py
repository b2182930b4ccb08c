"""The history of presence; devices that nobody knows."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.add_column("device", sa.Column("presence_at", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("device", sa.Column("stranger", sa.Boolean, nullable=False, server_default=sa.false()))
    where = sa.text("stranger")
    op.create_index("device_stranger", "device", ["last_seen", "mac"], sqlite_where=where, postgresql_where=where)
    op.create_table(
        "presence",
        sa.Column("tenant", sa.Integer, nullable=False),
        sa.Column("mac", _KEY, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("online", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "mac", "at", name="presence_pk"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="presence_tenant_fk"),
        sa.ForeignKeyConstraint(["mac"], ["device.mac"], name="presence_mac_fk", ondelete="CASCADE"),
        sqlite_with_rowid=False,
    )
    op.create_index("presence_mac", "presence", ["mac"])
    op.create_index("presence_at", "presence", ["at"])
