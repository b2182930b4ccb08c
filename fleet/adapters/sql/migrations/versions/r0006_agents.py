"""Agents with versions, their assignments, and the catalogue of providers."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0003"

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _agents()
    _assignments()
    _providers()


def _agents() -> None:
    op.create_table(
        "agent",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("tenant", sa.Integer, nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("notes", sa.String(4000), nullable=False, server_default=""),
        sa.Column("draft", sa.JSON, nullable=False),
        sa.Column("live", sa.Integer, nullable=False, server_default="0"),
        sa.Column("version", sa.Integer, nullable=False, server_default="1"),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="agent_pk"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="agent_tenant_fk"),
        sa.UniqueConstraint("tenant", "name", name="agent_tenant_name_uq"),
    )
    op.create_table(
        "agent_version",
        sa.Column("agent", _KEY, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("document", sa.JSON, nullable=False),
        sa.Column("author", sa.String(100), nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("agent", "number", name="agent_version_pk"),
        sa.ForeignKeyConstraint(["agent"], ["agent.id"], name="agent_version_agent_fk", ondelete="CASCADE"),
    )


def _assignments() -> None:
    op.create_table(
        "assignment",
        sa.Column("tenant", sa.Integer, nullable=False),
        sa.Column("scope", sa.String(8), nullable=False),
        sa.Column("ref", sa.BigInteger, nullable=False),
        sa.Column("agent", _KEY, nullable=False),
        sa.Column("rank", sa.Integer, nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("tenant", "scope", "ref", name="assignment_pk"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="assignment_tenant_fk"),
        sa.ForeignKeyConstraint(["agent"], ["agent.id"], name="assignment_agent_fk", ondelete="CASCADE"),
    )
    op.create_index("assignment_agent", "assignment", ["agent"])


def _providers() -> None:
    op.create_table(
        "provider",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("tenant", sa.Integer, nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("adapter", sa.String(63), nullable=False),
        sa.Column("base_url", sa.String(500), nullable=False, server_default=""),
        sa.Column("secret", sa.String(2000), nullable=False, server_default=""),
        sa.Column("model", sa.String(128), nullable=False, server_default=""),
        sa.Column("voices", sa.JSON, nullable=False),
        sa.Column("sample_rate", sa.Integer, nullable=False, server_default="0"),
        sa.Column("version", sa.Integer, nullable=False, server_default="1"),
        sa.PrimaryKeyConstraint("id", name="provider_pk"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="provider_tenant_fk"),
        sa.UniqueConstraint("tenant", "name", name="provider_tenant_name_uq"),
    )
