"""The tables of what happened: events, conversations, usage. Times are milliseconds since 1970."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from fleet.adapters.sql.schema import METADATA

KEY = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers only a primary key of the type INTEGER by itself."""

EVENT = Table(
    "event",
    METADATA,
    # Given by the one process that collects events, so that the order of ids is the order in which they appear.
    Column("id", KEY, primary_key=True, autoincrement=False),
    Column("tenant", Integer, ForeignKey("tenant.id"), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("kind", String(63), nullable=False),
    # 0: of no device. No foreign key: an event may tell of a device that is not in the registry yet, or not any more.
    Column("mac", KEY, nullable=False),
    Column("data", Text, nullable=False),
    Index("event_tenant_id", "tenant", "id"),
    Index("event_mac_id", "mac", "id"),
)

# One row: the newest lease under which events are collected, and the id of the next event.
COLLECTOR = Table(
    "event_collector",
    METADATA,
    Column("id", SmallInteger, primary_key=True, autoincrement=False),
    Column("fence", BigInteger, nullable=False),
    Column("next", BigInteger, nullable=False),
)

# How far the stream of each shard was read. `entries` and `dropped` count from the beginning of the stream.
EVENT_POSITION = Table(
    "event_position",
    METADATA,
    Column("shard", Integer, primary_key=True, autoincrement=False),
    Column("last", String(48), nullable=False),
    Column("entries", BigInteger, nullable=False),
    Column("dropped", BigInteger, nullable=False),
)

CONVERSATION = Table(
    "conversation",
    METADATA,
    Column("id", KEY, primary_key=True),
    Column("tenant", Integer, ForeignKey("tenant.id"), nullable=False),
    Column("mac", KEY, nullable=False),
    # Of the device; a typed turn without a session is a conversation of its own, under the turn's name.
    Column("session", String(64), nullable=False),
    Column("agent", String(63), nullable=False),
    Column("started", BigInteger, nullable=False),
    Column("ended", BigInteger, nullable=False),
    Column("turns", Integer, nullable=False),
    UniqueConstraint("mac", "session"),
    Index("conversation_tenant_id", "tenant", "id"),
    Index("conversation_ended", "ended"),
)

CONVERSATION_TURN = Table(
    "conversation_turn",
    METADATA,
    Column("id", KEY, primary_key=True),
    Column("tenant", Integer, ForeignKey("tenant.id"), nullable=False),
    Column("conversation", BigInteger, ForeignKey("conversation.id", ondelete="CASCADE"), nullable=False),
    Column("mac", KEY, nullable=False),
    Column("turn", String(64), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("question", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("language", String(32), nullable=False),
    Column("outcome", String(16), nullable=False),
    Column("typed", Boolean, nullable=False),
    Column("stages", JSON, nullable=False),
    Column("tools", JSON, nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("cached_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("speech_ms", Integer, nullable=False),
    Column("spoken_ms", Integer, nullable=False),
    # Question and answer in small letters.
    Column("search", Text, nullable=False),
    # The lines that were taken back: `question`, `answer`, both or none.
    Column("redacted", String(32), nullable=False, server_default=""),
    UniqueConstraint("mac", "turn"),
    Index("conversation_turn_conversation", "conversation", "id"),
    Index("conversation_turn_tenant_id", "tenant", "id"),
)

COUNTED = (
    *("sessions", "turns", "failed", "interrupted", "tool_calls", "speech_ms", "spoken_ms"),
    *("input_tokens", "cached_tokens", "output_tokens"),
)
"""The columns of `usage_day` that are added up."""

USAGE = Table(
    "usage_day",
    METADATA,
    Column("tenant", Integer, ForeignKey("tenant.id"), primary_key=True),
    # Days since 1970, in UTC.
    Column("day", Integer, primary_key=True),
    Column("mac", KEY, primary_key=True),
    Column("agent", String(63), primary_key=True),
    *(Column(name, BigInteger, nullable=False) for name in COUNTED),
    Index("usage_day_mac", "mac"),
    sqlite_with_rowid=False,
)
