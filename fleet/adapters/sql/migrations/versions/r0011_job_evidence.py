"""Executions of jobs that wait for evidence."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("job", sa.Column("witnessed", sa.BigInteger))
    op.add_column("job", sa.Column("n_verifying", sa.Integer, nullable=False, server_default="0"))
