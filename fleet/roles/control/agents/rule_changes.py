"""Changes of which devices have which agent: what is counted before one still holds when it is made."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

from fastapi import Request

from fleet.adapters.sql.database import Database
from fleet.adapters.sql.rule_versions import RuleVersions
from fleet.ground.errors import Unavailable
from fleet.roles.control.access import principal_of
from fleet.roles.control.changes import Changes, OpenChange
from fleet.roles.control.problems import Problem

WAIT_SECONDS: Final = 20.0
"""How long a change waits for others of its tenant, which may count for several seconds each."""
TRIES: Final = 5
"""How often a change counts again after another process of control has made one meanwhile."""


class RuleChanges:
    """Opens changes of assignments, groups and members. Those of one tenant are made one after the other.

    Two changes that count at the same moment may each concern nobody, and both together many devices: a group gets its
    agent while it gets its members.

    Args:
        changes: Opens all changes.
        database: Where they are made.
    """

    def __init__(self, changes: Changes, database: Database) -> None:
        self._changes, self._database = changes, database
        self._turns: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        """By tenant; a lock lives while a change has it or waits for it."""

    @asynccontextmanager
    async def begin(self, request: Request, check: Callable[[], Awaitable[None]]) -> AsyncIterator[OpenChange]:
        """Open a change as `Changes.begin` does, after a check that counts; inside the block its counts still hold.

        Args:
            request: Was admitted.
            check: Raises if the change may not be made. It may run more than once.

        Raises:
            Problem: Other processes changed the same without an end (409).
            Unavailable: The database does not answer, or others of the tenant take too long.
        """
        tenant = principal_of(request).tenant
        turn = self._turns.setdefault(tenant, asyncio.Lock())
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await turn.acquire()
        except TimeoutError as error:
            raise Unavailable("other changes of groups and agents take too long") from error
        try:
            for _ in range(TRIES):
                seen = await RuleVersions(self._database, tenant).read()
                await check()
                async with self._changes.begin(request) as change:
                    if await RuleVersions(change.sql, tenant).advance(seen):
                        yield change
                        return
            raise Problem(409, "changed-meanwhile", "others change groups and agents at the same time: try again")
        finally:
            turn.release()
