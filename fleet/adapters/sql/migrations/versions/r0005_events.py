"""Events, conversations, usage."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0002"

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_COUNTED = (
    *("sessions", "turns", "failed", "interrupted", "tool_calls", "speech_ms", "spoken_ms"),
    *("input_tokens", "cached_tokens", "output_tokens"),
)


def upgrade() -> None:
    _events()
    _collector()
    _conversations()
    _turns()
    _usage()


def _column(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


def _events() -> None:
    op.create_table(
        "event",
        sa.Column("id", _KEY, nullable=False, autoincrement=False),
        _column("tenant", sa.Integer()),
        _column("at", sa.BigInteger()),
        _column("kind", sa.String(63)),
        _column("mac", _KEY),
        _column("data", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="event_pk"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="event_tenant_fk"),
    )
    op.create_index("event_tenant_id", "event", ["tenant", "id"])
    op.create_index("event_mac_id", "event", ["mac", "id"])


def _collector() -> None:
    collector = op.create_table(
        "event_collector",
        sa.Column("id", sa.SmallInteger, nullable=False, autoincrement=False),
        _column("fence", sa.BigInteger()),
        _column("next", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="event_collector_pk"),
    )
    op.bulk_insert(collector, [{"id": 1, "fence": 0, "next": 1}])
    op.create_table(
        "event_position",
        sa.Column("shard", sa.Integer, nullable=False, autoincrement=False),
        _column("last", sa.String(48)),
        _column("entries", sa.BigInteger()),
        _column("dropped", sa.BigInteger()),
        sa.PrimaryKeyConstraint("shard", name="event_position_pk"),
    )


def _conversations() -> None:
    op.create_table(
        "conversation",
        sa.Column("id", _KEY, nullable=False),
        _column("tenant", sa.Integer()),
        _column("mac", _KEY),
        _column("session", sa.String(64)),
        _column("agent", sa.String(63)),
        _column("started", sa.BigInteger()),
        _column("ended", sa.BigInteger()),
        _column("turns", sa.Integer()),
        sa.PrimaryKeyConstraint("id", name="conversation_pk"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="conversation_tenant_fk"),
        sa.UniqueConstraint("mac", "session", name="conversation_mac_session_uq"),
    )
    op.create_index("conversation_tenant_id", "conversation", ["tenant", "id"])
    op.create_index("conversation_ended", "conversation", ["ended"])


def _turns() -> None:
    op.create_table(
        "conversation_turn",
        sa.Column("id", _KEY, nullable=False),
        _column("tenant", sa.Integer()),
        _column("conversation", sa.BigInteger()),
        _column("mac", _KEY),
        _column("turn", sa.String(64)),
        _column("at", sa.BigInteger()),
        _column("question", sa.Text()),
        _column("answer", sa.Text()),
        _column("language", sa.String(32)),
        _column("outcome", sa.String(16)),
        _column("typed", sa.Boolean()),
        _column("stages", sa.JSON()),
        _column("tools", sa.JSON()),
        *(_column(name, sa.Integer()) for name in ("input_tokens", "cached_tokens", "output_tokens")),
        *(_column(name, sa.Integer()) for name in ("speech_ms", "spoken_ms")),
        _column("search", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="conversation_turn_pk"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="conversation_turn_tenant_fk"),
        sa.ForeignKeyConstraint(
            ["conversation"], ["conversation.id"], name="conversation_turn_conversation_fk", ondelete="CASCADE"
        ),
        sa.UniqueConstraint("mac", "turn", name="conversation_turn_mac_turn_uq"),
    )
    op.create_index("conversation_turn_conversation", "conversation_turn", ["conversation", "id"])
    op.create_index("conversation_turn_tenant_id", "conversation_turn", ["tenant", "id"])


def _usage() -> None:
    op.create_table(
        "usage_day",
        _column("tenant", sa.Integer()),
        _column("day", sa.Integer()),
        _column("mac", _KEY),
        _column("agent", sa.String(63)),
        *(_column(name, sa.BigInteger()) for name in _COUNTED),
        sa.PrimaryKeyConstraint("tenant", "day", "mac", "agent", name="usage_day_pk"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="usage_day_tenant_fk"),
        sqlite_with_rowid=False,
    )
    op.create_index("usage_day_mac", "usage_day", ["mac"])
