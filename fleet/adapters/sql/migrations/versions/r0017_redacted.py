"""Which lines of a turn were taken back."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.add_column("conversation_turn", sa.Column("redacted", sa.String(32), nullable=False, server_default=""))
