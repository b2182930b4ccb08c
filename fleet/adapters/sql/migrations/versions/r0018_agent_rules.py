"""Which changes of agents, groups and their members a tenant has seen."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.add_column("tenant", sa.Column("rules", sa.BigInteger, nullable=False, server_default="0"))
