"""Jobs that begin later, that supersede others, that have versions, and whose numbers are never given again."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("job", sa.Column("starts", sa.BigInteger))
    op.add_column("job", sa.Column("supersedes", sa.String(63), nullable=False, server_default=""))
    op.add_column("job", sa.Column("version", sa.Integer, nullable=False, server_default="1"))
    op.execute("INSERT INTO given_number (name, last) VALUES ('job', 0)")
    if op.get_bind().dialect.name == "sqlite":
        note = "UPDATE given_number SET last = max(last, old.id) WHERE name = 'job'"
        op.execute(f"CREATE TRIGGER job_number AFTER DELETE ON job BEGIN {note}; END")
