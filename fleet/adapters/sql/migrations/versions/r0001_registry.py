"""Tenants, devices with tags, tools and groups, tokens, audit."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _tenants()
    _tools()
    _devices()
    _tags()
    _groups()
    _tokens()
    _audit()
    _idempotency()
    _search()


def _tenants() -> None:
    tenant = op.create_table(
        "tenant",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("slug", sa.String(63), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="tenant_pk"),
        sa.UniqueConstraint("slug", name="tenant_slug_uq"),
    )
    op.bulk_insert(tenant, [{"id": 1, "slug": "default", "name": "Default", "created": 0}])


def _devices() -> None:
    op.create_table(
        "device",
        sa.Column("mac", _KEY, nullable=False, autoincrement=False),
        sa.Column("tenant", sa.Integer, nullable=False),
        sa.Column("name", sa.String(200), nullable=False, server_default=""),
        sa.Column("notes", sa.String(4000), nullable=False, server_default=""),
        sa.Column("attributes", sa.JSON, nullable=False, server_default="{}"),
        sa.Column("agent", sa.String(63), nullable=False, server_default=""),
        sa.Column("version", sa.Integer, nullable=False, server_default="1"),
        sa.Column("state", sa.String(16), nullable=False, server_default="registered"),
        sa.Column("board", sa.String(64), nullable=False, server_default=""),
        sa.Column("firmware", sa.String(64), nullable=False, server_default=""),
        sa.Column("firmware_number", sa.BigInteger),
        sa.Column("serial", sa.String(64), nullable=False, server_default=""),
        sa.Column("client", sa.String(64), nullable=False, server_default=""),
        sa.Column("language", sa.String(32), nullable=False, server_default=""),
        sa.Column("online", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("first_seen", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("last_seen", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("last_boot", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("tool_list", _KEY),
        sa.Column("search", sa.Text, nullable=False, server_default=""),
        sa.PrimaryKeyConstraint("mac", name="device_pk"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="device_tenant_fk"),
        sa.ForeignKeyConstraint(["tool_list"], ["tool_list.id"], name="device_tool_list_fk"),
    )
    op.create_index("device_tenant_mac", "device", ["tenant", "mac"])
    for name, columns in (
        ("name", ["name"]),
        ("last_seen", ["last_seen"]),
        ("last_boot", ["last_boot"]),
        ("board", ["board"]),
        ("firmware", ["firmware_number", "firmware"]),
        ("online", ["online"]),
        ("state", ["state"]),
        ("agent", ["agent"]),
        ("language", ["language"]),
        ("tool_list", ["tool_list"]),
    ):
        op.create_index(f"device_tenant_{name}", "device", ["tenant", *columns, "mac"])


def _tools() -> None:
    op.create_table(
        "tool_list",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="tool_list_pk"),
        sa.UniqueConstraint("digest", name="tool_list_digest_uq"),
    )
    op.create_table(
        "listed_tool",
        sa.Column("tool", sa.String(128), nullable=False),
        sa.Column("list", _KEY, nullable=False),
        sa.PrimaryKeyConstraint("tool", "list", name="listed_tool_pk"),
        sa.ForeignKeyConstraint(["list"], ["tool_list.id"], name="listed_tool_list_fk", ondelete="CASCADE"),
        sqlite_with_rowid=False,
    )
    op.create_index("listed_tool_list", "listed_tool", ["list"])


def _tags() -> None:
    op.create_table(
        "device_tag",
        sa.Column("tenant", sa.Integer, nullable=False),
        sa.Column("key", sa.String(63), nullable=False),
        sa.Column("value", sa.String(200), nullable=False),
        sa.Column("mac", _KEY, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "key", "value", "mac", name="device_tag_pk"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="device_tag_tenant_fk"),
        sa.ForeignKeyConstraint(["mac"], ["device.mac"], name="device_tag_mac_fk", ondelete="CASCADE"),
        sqlite_with_rowid=False,
    )
    op.create_index("device_tag_mac", "device_tag", ["mac", "key"], unique=True)


def _groups() -> None:
    op.create_table(
        "device_group",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("tenant", sa.Integer, nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("query", sa.String(2000), nullable=False, server_default=""),
        sa.Column("notes", sa.String(4000), nullable=False, server_default=""),
        sa.Column("version", sa.Integer, nullable=False, server_default="1"),
        sa.PrimaryKeyConstraint("id", name="device_group_pk"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="device_group_tenant_fk"),
        sa.UniqueConstraint("tenant", "name", name="device_group_tenant_name_uq"),
    )
    op.create_table(
        "device_group_member",
        sa.Column("group", sa.BigInteger, nullable=False),
        sa.Column("mac", _KEY, nullable=False),
        sa.PrimaryKeyConstraint("group", "mac", name="device_group_member_pk"),
        sa.ForeignKeyConstraint(
            ["group"], ["device_group.id"], name="device_group_member_group_fk", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["mac"], ["device.mac"], name="device_group_member_mac_fk", ondelete="CASCADE"),
        sqlite_with_rowid=False,
    )
    op.create_index("device_group_member_mac", "device_group_member", ["mac"])


def _tokens() -> None:
    op.create_table(
        "token",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("tenant", sa.Integer, nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("scopes", sa.JSON, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("expires", sa.BigInteger),
        sa.Column("last_used", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="token_pk"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="token_tenant_fk"),
        sa.UniqueConstraint("digest", name="token_digest_uq"),
        sa.UniqueConstraint("tenant", "name", name="token_tenant_name_uq"),
    )


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("tenant", sa.Integer, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("actor", sa.String(100), nullable=False),
        sa.Column("source", sa.String(64), nullable=False),
        sa.Column("action", sa.String(63), nullable=False),
        sa.Column("object", sa.String(200), nullable=False),
        sa.Column("before", sa.JSON),
        sa.Column("after", sa.JSON),
        sa.Column("request", sa.String(64), nullable=False, server_default=""),
        sa.PrimaryKeyConstraint("id", name="audit_pk"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="audit_tenant_fk"),
    )
    op.create_index("audit_tenant_object", "audit", ["tenant", "object", "id"])
    op.create_index("audit_tenant_id", "audit", ["tenant", "id"])


def _idempotency() -> None:
    op.create_table(
        "idempotency",
        sa.Column("tenant", sa.Integer, nullable=False),
        sa.Column("key", sa.String(200), nullable=False),
        sa.Column("request_digest", sa.String(64), nullable=False),
        sa.Column("status", sa.SmallInteger, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("expires", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "key", name="idempotency_pk"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="idempotency_tenant_fk"),
    )
    op.create_index("idempotency_expires", "idempotency", ["expires"])


def _search() -> None:
    """Index every three letters of `device.search`, so that a substring is found without a look at all devices."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
        op.execute("CREATE INDEX device_search ON device USING gin (search gin_trgm_ops)")
        return
    op.execute(
        "CREATE VIRTUAL TABLE device_search USING fts5"
        "(search, content='device', content_rowid='mac', tokenize='trigram case_sensitive 1', detail='full')"
    )
    insert = "INSERT INTO device_search(rowid, search) VALUES (new.mac, new.search);"
    delete = "INSERT INTO device_search(device_search, rowid, search) VALUES ('delete', old.mac, old.search);"
    op.execute(f"CREATE TRIGGER device_search_insert AFTER INSERT ON device BEGIN {insert} END")
    op.execute(f"CREATE TRIGGER device_search_delete AFTER DELETE ON device BEGIN {delete} END")
    op.execute(
        f"CREATE TRIGGER device_search_update AFTER UPDATE OF search ON device "
        f"WHEN old.search IS NOT new.search BEGIN {delete} {insert} END"
    )
