"""Deletes what is kept for a time only: answers to repeated requests, ended sign-ins, old rows of the audit log."""

import asyncio

from fleet.adapters.sql.account_rows import SignOuts
from fleet.adapters.sql.audit_rows import AuditRows
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.idempotency_rows import IdempotencyRows
from fleet.roles.control.access import milliseconds

PAUSE_SECONDS = 60.0
_DAY_MS = 86_400_000
_LEAST_DAYS = 31
"""The database refuses to delete rows of the last 30 days, by its own clock."""


class Tidying:
    """Tidies once a minute.

    Args:
        database: What is tidied.
        audit_days: How long the audit log is kept; 0 for ever.
    """

    def __init__(self, database: Database, audit_days: int) -> None:
        self._idempotency, self._audit = IdempotencyRows(database), AuditRows(database)
        self._sign_outs, self._audit_days = SignOuts(database), audit_days

    async def run(self, fence: str) -> None:
        """Tidy until cancelled."""
        while True:
            await self.tidy(milliseconds())
            await asyncio.sleep(PAUSE_SECONDS)

    async def tidy(self, now: int) -> None:
        """Tidy once; `now` is in milliseconds since 1970.

        Raises:
            Unavailable: The database does not answer.
        """
        await self._idempotency.tidy(now)
        await self._sign_outs.tidy(now)
        kept = max(self._audit_days, _LEAST_DAYS) * _DAY_MS
        while self._audit_days and await self._audit.tidy(now - kept):
            pass
