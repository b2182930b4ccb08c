"""The tables of jobs. Times are milliseconds since 1970."""

from sqlalchemy import JSON, BigInteger, Boolean, Column, ForeignKey, Index, Integer, SmallInteger, String, Table

from fleet.adapters.sql.history_schema import KEY
from fleet.adapters.sql.schema import METADATA
from fleet.wire.job_states import EXECUTION_STATES

COUNTS = tuple(f"n_{state}" for state in EXECUTION_STATES)
"""Columns with the number of executions in each state, changed in the transaction that changes them."""

JOB = Table(
    "job",
    METADATA,
    Column("id", KEY, primary_key=True),
    Column("tenant", Integer, ForeignKey("tenant.id"), nullable=False),
    Column("name", String(63), nullable=False),
    Column("kind", String(32), nullable=False),
    # Tool and arguments, or what the kind needs.
    Column("body", JSON, nullable=False),
    Column("query", String(2000), nullable=False),
    # Whether devices that the query means later join.
    Column("continuous", Boolean, nullable=False),
    Column("policy", JSON, nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", String(200), nullable=False),
    # What the last event announced: another state or stage makes the next event.
    Column("announced", String(32), nullable=False),
    # When it was announced.
    Column("since", BigInteger, nullable=False, server_default="0"),
    Column("stage", SmallInteger, nullable=False),
    # Devices with places up to here are reached; -1 before the first stage.
    Column("reach", BigInteger, nullable=False),
    Column("settled", BigInteger),
    Column("approved", SmallInteger, nullable=False),
    # The MAC up to which the query was read.
    Column("walked", KEY, nullable=False),
    # CallEnd and failed executions: since the stage began, and of late.
    *(Column(name, Integer, nullable=False) for name in ("stage_ok", "stage_failed", "recent_ended", "recent_failed")),
    # States of executions that are to be tried again, as a set of bits, if they ended by then.
    Column("retry_states", SmallInteger, nullable=False),
    Column("retry_until", BigInteger, nullable=False),
    # The event up to which evidence was read; none before the first look.
    Column("witnessed", BigInteger),
    Column("created", BigInteger, nullable=False),
    Column("created_by", String(100), nullable=False),
    Column("ended", BigInteger),
    Column("expires", BigInteger, nullable=False),
    # When it begins, if that is later than it was made.
    Column("starts", BigInteger),
    # A newer job with the same key stops it; empty for none.
    Column("supersedes", String(63), nullable=False, server_default=""),
    # Rises with each change of a person, and with each new state or stage.
    Column("version", Integer, nullable=False, server_default="1"),
    *(Column(name, Integer, nullable=False, server_default="0") for name in COUNTS),
    Index("job_tenant_id", "tenant", "id"),
    Index("job_state", "state", "id"),
)

# One row for a device in a job. `place` orders the rows of a state: queued ones by their bucket in the job's order,
# waiting ones by the time when they are due, verifying ones by their deadline, all others by when they got the state.
# No foreign key to the device: what happened stays when it moves to another tenant.
JOB_EXECUTION = Table(
    "job_execution",
    METADATA,
    Column("job", KEY, ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    Column("mac", KEY, primary_key=True),
    Column("state", SmallInteger, nullable=False),
    Column("place", BigInteger, nullable=False),
    # Hand-overs and retries so far; a call's id has the number of its hand-over.
    Column("attempt", SmallInteger, nullable=False),
    Column("retries", SmallInteger, nullable=False),
    Column("text", String(1000), nullable=False),
    Index("job_execution_state", "job", "state", "place", "mac"),
    sqlite_with_rowid=False,
)

# One row: the fence of the newest lease for work on jobs, and the run of Redis that holds the calls handed over.
JOB_FEEDER = Table(
    "job_feeder",
    METADATA,
    Column("id", SmallInteger, primary_key=True, autoincrement=False),
    Column("fence", BigInteger, nullable=False),
    Column("life", String(128), nullable=False),
)
