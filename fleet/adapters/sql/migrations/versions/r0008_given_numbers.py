"""The numbers of what was deleted: SQLite would give them again."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_NUMBERED = ("token", "device_group", "agent", "provider")


def upgrade() -> None:
    given = op.create_table(
        "given_number",
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("last", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="given_number_pk"),
    )
    op.bulk_insert(given, [{"name": name, "last": 0} for name in _NUMBERED])
    if op.get_bind().dialect.name == "sqlite":
        for name in _NUMBERED:
            note = f"UPDATE given_number SET last = max(last, old.id) WHERE name = '{name}'"
            op.execute(f"CREATE TRIGGER {name}_number AFTER DELETE ON {name} BEGIN {note}; END")
