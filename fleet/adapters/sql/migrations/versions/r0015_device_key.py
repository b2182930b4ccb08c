"""The key from which a device's password derives."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.add_column("device", sa.Column("key", sa.String(32), nullable=False, server_default=""))
    op.create_index("device_tenant_key", "device", ["tenant", "key", "mac"])
