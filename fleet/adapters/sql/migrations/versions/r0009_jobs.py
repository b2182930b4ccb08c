"""Jobs, and what happened on each device."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_COUNTED = (
    *("n_queued", "n_waiting", "n_sent", "n_ok", "n_error"),
    *("n_unknown", "n_timed_out", "n_expired", "n_skipped", "n_cancelled"),
)


def upgrade() -> None:
    _jobs()
    _executions()
    feeder = op.create_table(
        "job_feeder",
        sa.Column("id", sa.SmallInteger, nullable=False, autoincrement=False),
        _column("fence", sa.BigInteger()),
        _column("life", sa.String(128)),
        sa.PrimaryKeyConstraint("id", name="job_feeder_pk"),
    )
    op.bulk_insert(feeder, [{"id": 1, "fence": 0, "life": ""}])


def _column(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


def _jobs() -> None:
    op.create_table(
        "job",
        sa.Column("id", _KEY, nullable=False),
        _column("tenant", sa.Integer()),
        _column("name", sa.String(63)),
        _column("kind", sa.String(32)),
        _column("body", sa.JSON()),
        _column("query", sa.String(2000)),
        _column("continuous", sa.Boolean()),
        _column("policy", sa.JSON()),
        _column("state", sa.String(16)),
        _column("reason", sa.String(200)),
        _column("announced", sa.String(32)),
        _column("stage", sa.SmallInteger()),
        _column("reach", sa.BigInteger()),
        sa.Column("settled", sa.BigInteger),
        _column("approved", sa.SmallInteger()),
        _column("walked", _KEY),
        *(_column(name, sa.Integer()) for name in ("stage_ok", "stage_failed", "recent_ended", "recent_failed")),
        _column("retry_states", sa.SmallInteger()),
        _column("retry_until", sa.BigInteger()),
        _column("created", sa.BigInteger()),
        _column("created_by", sa.String(100)),
        sa.Column("ended", sa.BigInteger),
        _column("expires", sa.BigInteger()),
        *(sa.Column(name, sa.Integer, nullable=False, server_default="0") for name in _COUNTED),
        sa.PrimaryKeyConstraint("id", name="job_pk"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="job_tenant_fk"),
    )
    op.create_index("job_tenant_id", "job", ["tenant", "id"])
    op.create_index("job_state", "job", ["state", "id"])


def _executions() -> None:
    op.create_table(
        "job_execution",
        sa.Column("job", _KEY, nullable=False),
        sa.Column("mac", _KEY, nullable=False),
        _column("state", sa.SmallInteger()),
        _column("place", sa.BigInteger()),
        _column("attempt", sa.SmallInteger()),
        _column("retries", sa.SmallInteger()),
        _column("text", sa.String(1000)),
        sa.PrimaryKeyConstraint("job", "mac", name="job_execution_pk"),
        sa.ForeignKeyConstraint(["job"], ["job.id"], name="job_execution_job_fk", ondelete="CASCADE"),
        sqlite_with_rowid=False,
    )
    op.create_index("job_execution_state", "job_execution", ["job", "state", "place", "mac"])
