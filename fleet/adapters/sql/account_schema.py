"""The tables of operators' accounts; times are milliseconds since 1970."""

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, String, Table, UniqueConstraint
from sqlalchemy.sql.expression import false

from fleet.adapters.sql.history_schema import KEY
from fleet.adapters.sql.schema import METADATA

# `password` is the hash by argon2id with its salt. A sign-in under an older `epoch` counts no more.
ACCOUNT = Table(
    "account",
    METADATA,
    Column("id", KEY, primary_key=True),
    Column("tenant", Integer, ForeignKey("tenant.id"), nullable=False),
    Column("name", String(63), nullable=False),
    Column("role", String(16), nullable=False),
    Column("password", String(200), nullable=False),
    Column("epoch", Integer, nullable=False, server_default="1"),
    Column("disabled", Boolean, nullable=False, server_default=false()),
    Column("created", BigInteger, nullable=False),
    Column("last_sign_in", BigInteger),
    UniqueConstraint("tenant", "name"),
)

# Sign-ins that somebody ended, until they would have ended by themselves: a Redis that comes back from an older copy
# knows them again.
SIGN_OUT = Table(
    "sign_out",
    METADATA,
    Column("digest", String(64), primary_key=True),
    Column("until", BigInteger, nullable=False),
    Index("sign_out_until", "until"),
)
