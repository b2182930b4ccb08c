"""Images of firmware and assets."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.create_table(
        "image",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("tenant", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("board", sa.String(64), nullable=False),
        sa.Column("version", sa.String(64), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("created_by", sa.String(100), nullable=False),
        sa.PrimaryKeyConstraint("id", name="image_pk"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="image_tenant_fk"),
        sa.UniqueConstraint("tenant", "kind", "board", "version", name="image_uq"),
    )
    op.create_index("image_sha256", "image", ["sha256"])
    op.execute("INSERT INTO given_number (name, last) VALUES ('image', 0)")
    if op.get_bind().dialect.name == "sqlite":
        note = "UPDATE given_number SET last = max(last, old.id) WHERE name = 'image'"
        op.execute(f"CREATE TRIGGER image_number AFTER DELETE ON image BEGIN {note}; END")
