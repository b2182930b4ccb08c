"""The table of images: files of firmware and assets that devices can be given."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, String, Table, UniqueConstraint

from fleet.adapters.sql.history_schema import KEY
from fleet.adapters.sql.schema import METADATA

IMAGE = Table(
    "image",
    METADATA,
    Column("id", KEY, primary_key=True),
    Column("tenant", Integer, ForeignKey("tenant.id"), nullable=False),
    # firmware or assets.
    Column("kind", String(16), nullable=False),
    Column("board", String(64), nullable=False),
    Column("version", String(64), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("created_by", String(100), nullable=False),
    UniqueConstraint("tenant", "kind", "board", "version", name="image_uq"),
    Index("image_sha256", "sha256"),
)
