"""Reads and deletes what was said in one tenant's conversations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import CursorResult, Row, delete, func, select

from fleet.adapters.sql.database import Database
from fleet.adapters.sql.history_schema import CONVERSATION, CONVERSATION_TURN, EVENT, USAGE
from fleet.adapters.sql.mac_numbers import mac_number
from fleet.adapters.sql.transaction import Sql

MOST_TURNS = 500
"""Turns of one answer."""
SEARCHED = 20_000
"""Turns that one search looks through, from the newest on; the next page looks through the next ones."""
_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class ConversationQuery:
    """What is looked for. Times are milliseconds since 1970; `agent` None is any."""

    mac: str = ""
    agent: str | None = None
    since: int = 0
    before: int = 2**62
    words: str = ""
    """Text that occurs in a question or an answer."""


class ConversationRows:
    """Conversations of one tenant. All methods raise `Unavailable` while the database does not answer."""

    def __init__(self, database: Sql, tenant: int) -> None:
        self._database, self._tenant = database, tenant

    async def page(
        self, wanted: ConversationQuery, below: int | None, most: int
    ) -> tuple[Sequence[Row[Any]], int | None]:
        """Return conversations, the newest first, and the cursor of the next page.

        Args:
            wanted: What is looked for.
            below: The cursor: an id of a conversation; with words, of a turn.
            most: Conversations on the page.
        """
        if wanted.words:
            return await self._search(wanted, below, most)
        found = self._matching(wanted)
        if below is not None:
            found = found.where(CONVERSATION.c.id < below)
        async with self._database.reading() as connection:
            rows = (await connection.execute(found.order_by(CONVERSATION.c.id.desc()).limit(most + 1))).all()
        return rows[:most], rows[most - 1].id if len(rows) > most else None

    async def read(self, number: int) -> Row[Any] | None:
        """Return a conversation."""
        found = select(CONVERSATION).where(CONVERSATION.c.tenant == self._tenant, CONVERSATION.c.id == number)
        async with self._database.reading() as connection:
            return (await connection.execute(found)).one_or_none()

    async def turns(self, number: int, after: int = 0, most: int = MOST_TURNS) -> Sequence[Row[Any]]:
        """Return turns of a conversation above an id, the oldest first."""
        turn = CONVERSATION_TURN.c
        found = select(CONVERSATION_TURN).where(
            turn.tenant == self._tenant, turn.conversation == number, turn.id > after
        )
        async with self._database.reading() as connection:
            return (await connection.execute(found.order_by(turn.id).limit(most))).all()

    async def delete(self, number: int) -> bool:
        """Delete a conversation with its turns; return whether it was there."""
        gone = delete(CONVERSATION).where(CONVERSATION.c.tenant == self._tenant, CONVERSATION.c.id == number)
        async with self._database.writing() as connection:
            return cast("CursorResult[Any]", await connection.execute(gone)).rowcount > 0

    async def erase(self, mac: str) -> dict[str, int]:
        """Delete conversations, events and usage of a device; return how many rows of each."""
        counts = {}
        async with self._database.writing() as connection:
            for name, table in (("conversations", CONVERSATION), ("events", EVENT), ("usage", USAGE)):
                gone = delete(table).where(table.c.tenant == self._tenant, table.c.mac == mac_number(mac))
                counts[name] = cast("CursorResult[Any]", await connection.execute(gone)).rowcount
        return counts

    def _matching(self, wanted: ConversationQuery) -> Any:
        talk = CONVERSATION.c
        found = select(CONVERSATION).where(talk.tenant == self._tenant)
        if wanted.mac:
            found = found.where(talk.mac == mac_number(wanted.mac))
        if wanted.agent is not None:
            found = found.where(talk.agent == wanted.agent)
        if wanted.since:
            found = found.where(talk.ended >= wanted.since)
        if wanted.before < 2**62:
            found = found.where(talk.started < wanted.before)
        return found

    async def _search(
        self, wanted: ConversationQuery, below: int | None, most: int
    ) -> tuple[Sequence[Row[Any]], int | None]:
        """Walk down some turns, however few of them match, so that a search ends in bounded time."""
        turn = CONVERSATION_TURN.c
        window = select(turn.id, turn.conversation, turn.search).where(turn.tenant == self._tenant)
        if wanted.mac:
            window = window.where(turn.mac == mac_number(wanted.mac))
        if below is not None:
            window = window.where(turn.id < below)
        looked = window.order_by(turn.id.desc()).limit(SEARCHED).subquery()
        matches = select(looked.c.id, looked.c.conversation).where(
            looked.c.search.contains(wanted.words.casefold(), autoescape=True)
        )
        async with self._database.reading() as connection:
            lowest, count = (await connection.execute(select(func.min(looked.c.id), func.count()))).one()
            hits = (await connection.execute(matches.order_by(looked.c.id.desc()).limit(10 * most))).all()
            first, lowest_seen = dict[int, int](), 0
            for number, conversation in hits:
                if conversation not in first and len(first) == most:
                    break
                first[conversation] = number
                lowest_seen = number
            found = self._matching(wanted).where(CONVERSATION.c.id.in_(list(first)))
            rows = (await connection.execute(found.order_by(CONVERSATION.c.id.desc()))).all()
        if first and (len(hits) == 10 * most or len(first) == most):
            return rows, lowest_seen
        return rows, lowest if count == SEARCHED else None


class HistoryLimits:
    """Deletes what is too old. All methods raise `Unavailable` while the database does not answer."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def drop_events(self, before: int, most: int) -> int:
        """Delete some events from before a time (ms since 1970), or beyond a number; return how many."""
        async with self._database.reading() as connection:
            newest = (await connection.execute(select(func.max(EVENT.c.id)))).scalar_one() or 0
            oldest = select(EVENT.c.id, EVENT.c.at).order_by(EVENT.c.id).limit(_AT_ONCE)
            ids = [row.id for row in await connection.execute(oldest) if row.at < before or row.id <= newest - most]
        if not ids:
            return 0
        # From the oldest on without a hole, so that what is kept has no hole: times of shards differ a little.
        async with self._database.writing() as connection:
            gone = await connection.execute(delete(EVENT).where(EVENT.c.id <= ids[-1]))
            return cast("CursorResult[Any]", gone).rowcount

    async def drop_conversations(self, before: int) -> int:
        """Delete some conversations that ended before a time; return how many."""
        some = select(CONVERSATION.c.id).where(CONVERSATION.c.ended < before).order_by(CONVERSATION.c.ended)
        async with self._database.writing() as connection:
            ids = list((await connection.execute(some.limit(_AT_ONCE))).scalars())
            if ids:
                await connection.execute(delete(CONVERSATION).where(CONVERSATION.c.id.in_(ids)))
        return len(ids)

    async def drop_usage(self, before: int) -> int:
        """Delete usage of days (since 1970) before one; return how many rows."""
        async with self._database.writing() as connection:
            days = select(func.min(USAGE.c.day)).scalar_subquery()
            gone = delete(USAGE).where(USAGE.c.day < before, USAGE.c.day == days)
            return cast("CursorResult[Any]", await connection.execute(gone)).rowcount
