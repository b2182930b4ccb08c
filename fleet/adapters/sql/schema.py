"""The tables, as the newest migration leaves them (a test compares both).

Every table of a tenant has `tenant` first in its keys. A device's primary key is its MAC as a number: so every index
that ends with it is in the order of MACs, and pages in that order need no sorting. Times are milliseconds since 1970, 0
for never.
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.sql.expression import false

METADATA = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pk",
        "uq": "%(table_name)s_%(column_0_N_name)s_uq",
        "fk": "%(table_name)s_%(column_0_name)s_fk",
    }
)

_KEY = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers only a primary key of the type INTEGER by itself; there it has 64 bits, too."""


def _tenant() -> Column[int]:
    return Column("tenant", Integer, ForeignKey("tenant.id"), nullable=False, primary_key=True)


TENANT = Table(
    "tenant",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("slug", String(63), nullable=False, unique=True),
    Column("name", String(200), nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("rules", BigInteger, nullable=False, server_default="0"),
)

DEVICE = Table(
    "device",
    METADATA,
    Column("mac", _KEY, primary_key=True, autoincrement=False),
    Column("tenant", Integer, ForeignKey("tenant.id"), nullable=False),
    Column("name", String(200), nullable=False, server_default=""),
    Column("notes", String(4000), nullable=False, server_default=""),
    Column("attributes", JSON, nullable=False, server_default="{}"),
    Column("agent", String(63), nullable=False, server_default=""),
    Column("version", Integer, nullable=False, server_default="1"),
    # What Redis knows, copied some seconds later.
    Column("state", String(16), nullable=False, server_default="registered"),
    Column("board", String(64), nullable=False, server_default=""),
    Column("firmware", String(64), nullable=False, server_default=""),
    Column("firmware_number", BigInteger),
    Column("serial", String(64), nullable=False, server_default=""),
    Column("client", String(64), nullable=False, server_default=""),
    Column("language", String(32), nullable=False, server_default=""),
    Column("key", String(32), nullable=False, server_default=""),
    Column("online", Boolean, nullable=False, server_default=false()),
    Column("first_seen", BigInteger, nullable=False, server_default="0"),
    Column("last_seen", BigInteger, nullable=False, server_default="0"),
    Column("last_boot", BigInteger, nullable=False, server_default="0"),
    Column("presence_at", BigInteger, nullable=False, server_default="0"),
    # Whether it never connected and nobody bound or registered it. The number of such devices is bounded.
    Column("stranger", Boolean, nullable=False, server_default=false()),
    Column("tool_list", _KEY, ForeignKey("tool_list.id")),
    # Name, MAC, serial number and notes in small letters, for words without a field.
    Column("search", Text, nullable=False, server_default=""),
    Index("device_tenant_mac", "tenant", "mac"),
    Index("device_tenant_name", "tenant", "name", "mac"),
    Index("device_tenant_last_seen", "tenant", "last_seen", "mac"),
    Index("device_tenant_last_boot", "tenant", "last_boot", "mac"),
    Index("device_tenant_board", "tenant", "board", "mac"),
    Index("device_tenant_firmware", "tenant", "firmware_number", "firmware", "mac"),
    Index("device_tenant_online", "tenant", "online", "mac"),
    Index("device_tenant_state", "tenant", "state", "mac"),
    Index("device_tenant_agent", "tenant", "agent", "mac"),
    Index("device_tenant_language", "tenant", "language", "mac"),
    Index("device_tenant_key", "tenant", "key", "mac"),
    Index("device_tenant_tool_list", "tenant", "tool_list", "mac"),
    Index("device_stranger", "last_seen", "mac", sqlite_where=text("stranger"), postgresql_where=text("stranger")),
)

# When devices connected and disconnected. What happened before a device moved to another tenant stays with the old one.
PRESENCE = Table(
    "presence",
    METADATA,
    _tenant(),
    Column("mac", _KEY, ForeignKey("device.mac", ondelete="CASCADE"), primary_key=True),
    Column("at", BigInteger, primary_key=True),
    Column("online", Boolean, nullable=False),
    Index("presence_mac", "mac"),
    Index("presence_at", "at"),
    sqlite_with_rowid=False,
)

DEVICE_TAG = Table(
    "device_tag",
    METADATA,
    _tenant(),
    Column("key", String(63), primary_key=True),
    Column("value", String(200), primary_key=True),
    Column("mac", _KEY, ForeignKey("device.mac", ondelete="CASCADE"), primary_key=True),
    Index("device_tag_mac", "mac", "key", unique=True),
    sqlite_with_rowid=False,
)

# Devices with the same firmware offer the same tools, so each list of names exists once.
TOOL_LIST = Table(
    "tool_list",
    METADATA,
    Column("id", _KEY, primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
)

LISTED_TOOL = Table(
    "listed_tool",
    METADATA,
    Column("tool", String(128), primary_key=True),
    Column("list", _KEY, ForeignKey("tool_list.id", ondelete="CASCADE"), primary_key=True),
    Index("listed_tool_list", "list"),
    sqlite_with_rowid=False,
)

GROUP = Table(
    "device_group",
    METADATA,
    Column("id", _KEY, primary_key=True),
    Column("tenant", Integer, ForeignKey("tenant.id"), nullable=False),
    Column("name", String(63), nullable=False),
    # Empty for a static group.
    Column("query", String(2000), nullable=False, server_default=""),
    Column("notes", String(4000), nullable=False, server_default=""),
    Column("version", Integer, nullable=False, server_default="1"),
    UniqueConstraint("tenant", "name"),
)

GROUP_MEMBER = Table(
    "device_group_member",
    METADATA,
    Column("group", BigInteger, ForeignKey("device_group.id", ondelete="CASCADE"), primary_key=True),
    Column("mac", _KEY, ForeignKey("device.mac", ondelete="CASCADE"), primary_key=True),
    Index("device_group_member_mac", "mac"),
    sqlite_with_rowid=False,
)

TOKEN = Table(
    "token",
    METADATA,
    Column("id", _KEY, primary_key=True),
    Column("tenant", Integer, ForeignKey("tenant.id"), nullable=False),
    Column("name", String(63), nullable=False),
    Column("digest", String(64), nullable=False, unique=True),
    Column("scopes", JSON, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger),
    Column("last_used", BigInteger),
    UniqueConstraint("tenant", "name"),
)

AUDIT = Table(
    "audit",
    METADATA,
    Column("id", _KEY, primary_key=True),
    Column("tenant", Integer, ForeignKey("tenant.id"), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("actor", String(100), nullable=False),
    Column("source", String(64), nullable=False),
    Column("action", String(63), nullable=False),
    Column("object", String(200), nullable=False),
    Column("before", JSON),
    Column("after", JSON),
    Column("request", String(64), nullable=False, server_default=""),
    Index("audit_tenant_object", "tenant", "object", "id"),
    Index("audit_tenant_id", "tenant", "id"),
    Index("audit_at", "at"),
)

IDEMPOTENCY = Table(
    "idempotency",
    METADATA,
    Column("tenant", Integer, ForeignKey("tenant.id"), primary_key=True),
    Column("key", String(200), primary_key=True),
    Column("request_digest", String(64), nullable=False),
    # 0 while the request is under way, 1 when it has begun what cannot be undone.
    Column("status", SmallInteger, nullable=False),
    Column("body", Text, nullable=False),
    Column("expires", BigInteger, nullable=False),
    # Of the request that is under way.
    Column("owner", String(32), nullable=False, server_default=""),
    Column("headers", JSON),
    Index("idempotency_expires", "expires"),
    Index("idempotency_tenant_expires", "tenant", "expires"),
)

# The highest number of a deleted object of each table. Triggers of SQLite write it; PostgreSQL has sequences.
GIVEN_NUMBER = Table(
    "given_number",
    METADATA,
    Column("name", String(63), primary_key=True),
    Column("last", BigInteger, nullable=False),
)

# Random values that all processes of control share.
SECRET = Table(
    "secret",
    METADATA,
    Column("name", String(63), primary_key=True),
    Column("value", String(128), nullable=False),
)

# `live` is the number of the published version, 0 for none; `version` rises with each change of the draft.
AGENT = Table(
    "agent",
    METADATA,
    Column("id", _KEY, primary_key=True),
    Column("tenant", Integer, ForeignKey("tenant.id"), nullable=False),
    Column("name", String(63), nullable=False),
    Column("notes", String(4000), nullable=False, server_default=""),
    Column("draft", JSON, nullable=False),
    Column("live", Integer, nullable=False, server_default="0"),
    Column("version", Integer, nullable=False, server_default="1"),
    Column("created", BigInteger, nullable=False),
    UniqueConstraint("tenant", "name"),
)

AGENT_VERSION = Table(
    "agent_version",
    METADATA,
    Column("agent", _KEY, ForeignKey("agent.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("document", JSON, nullable=False),
    Column("author", String(100), nullable=False),
    Column("created", BigInteger, nullable=False),
)

# `scope` is `device`, `group` or `site`; `ref` is the MAC as a number, the id of the group, or 0.
ASSIGNMENT = Table(
    "assignment",
    METADATA,
    _tenant(),
    Column("scope", String(8), primary_key=True),
    Column("ref", BigInteger, primary_key=True),
    Column("agent", _KEY, ForeignKey("agent.id", ondelete="CASCADE"), nullable=False),
    Column("rank", Integer, nullable=False, server_default="0"),
    Index("assignment_agent", "agent"),
)

# `secret` is the key of the endpoint, encrypted (fleet/adapters/sealing.py).
PROVIDER = Table(
    "provider",
    METADATA,
    Column("id", _KEY, primary_key=True),
    Column("tenant", Integer, ForeignKey("tenant.id"), nullable=False),
    Column("name", String(63), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("adapter", String(63), nullable=False),
    Column("base_url", String(500), nullable=False, server_default=""),
    Column("secret", String(2000), nullable=False, server_default=""),
    Column("model", String(128), nullable=False, server_default=""),
    Column("voices", JSON, nullable=False),
    Column("sample_rate", Integer, nullable=False, server_default="0"),
    Column("version", Integer, nullable=False, server_default="1"),
    UniqueConstraint("tenant", "name"),
)
