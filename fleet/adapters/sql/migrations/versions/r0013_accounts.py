"""Operators' accounts, and sign-ins that were ended."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "account",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("tenant", sa.Integer, nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("password", sa.String(200), nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False, server_default="1"),
        sa.Column("disabled", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("last_sign_in", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="account_pk"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="account_tenant_fk"),
        sa.UniqueConstraint("tenant", "name", name="account_tenant_name_uq"),
    )
    op.create_table(
        "sign_out",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("until", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="sign_out_pk"),
    )
    op.create_index("sign_out_until", "sign_out", ["until"])
    op.execute("INSERT INTO given_number (name, last) VALUES ('account', 0)")
    if op.get_bind().dialect.name == "sqlite":
        note = "UPDATE given_number SET last = max(last, old.id) WHERE name = 'account'"
        op.execute(f"CREATE TRIGGER account_number AFTER DELETE ON account BEGIN {note}; END")
