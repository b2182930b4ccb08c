"""SQLite refuses `INSERT OR REPLACE` into the audit log, too: it deletes the old row without the trigger for that."""

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        there = "EXISTS (SELECT 1 FROM audit WHERE id = new.id)"
        refuse = "BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END"
        op.execute(f"CREATE TRIGGER audit_replace BEFORE INSERT ON audit WHEN {there} {refuse}")
