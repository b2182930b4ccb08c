"""Takes back what was said in one tenant's conversations: from the turns, and from the events that told of them."""

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Row, bindparam, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from fleet.adapters.sql.history_schema import CONVERSATION, CONVERSATION_TURN, EVENT
from fleet.adapters.sql.transaction import Sql

TEXTS: Final = {"question": "user", "answer": "answer"}
"""The lines of a turn, and their names in its events."""
_LATEST_MS: Final = 3_600_000
"""Longest time from a turn to the last event that repeats its texts."""
_AT_ONCE: Final = 1_000


class Redactions:
    """Redacts turns of one tenant. All methods raise `Unavailable` while the database does not answer."""

    def __init__(self, database: Sql, tenant: int) -> None:
        self._database, self._tenant = database, tenant

    async def read(self, conversation: int, number: int) -> Row[Any] | None:
        """Return a turn, and keep others from changing it."""
        turn = CONVERSATION_TURN.c
        found = select(CONVERSATION_TURN).where(
            turn.tenant == self._tenant, turn.conversation == conversation, turn.id == number
        )
        async with self._database.writing() as connection:
            return (await connection.execute(found.with_for_update())).one_or_none()

    async def redact(self, turn: Row[Any], lines: Collection[str]) -> None:
        """Take some lines of a turn back; those that were taken back before stay so."""
        gone = [name for name in TEXTS if name in lines or name in turn.redacted.split()]
        kept = ["" if name in gone else getattr(turn, name) for name in TEXTS]
        values = {
            **dict(zip(TEXTS, kept, strict=True)),
            "redacted": " ".join(gone),
            "search": "\n".join(kept).casefold(),
        }
        async with self._database.writing() as connection:
            await connection.execute(update(CONVERSATION_TURN).where(CONVERSATION_TURN.c.id == turn.id).values(values))
            await self._blank(connection, turn.mac, (turn.at, turn.at), {turn.turn}, [TEXTS[name] for name in gone])

    async def forget_events(self, conversation: int) -> None:
        """Take back what the events of a conversation repeat of its turns."""
        turn, talk = CONVERSATION_TURN.c, CONVERSATION.c
        found = select(talk.mac, talk.started, talk.ended).where(talk.tenant == self._tenant, talk.id == conversation)
        async with self._database.writing() as connection:
            row = (await connection.execute(found)).one_or_none()
            if row is not None:
                names = await connection.execute(select(turn.turn).where(turn.conversation == conversation))
                times = (row.started, row.ended)
                await self._blank(connection, row.mac, times, set(names.scalars()), [*TEXTS.values()])

    async def _blank(
        self, connection: AsyncConnection, mac: int, times: tuple[int, int], turns: set[str], names: Sequence[str]
    ) -> None:
        event, last = EVENT.c, 0
        found = select(event.id, event.data).where(
            *(event.tenant == self._tenant, event.mac == mac, event.kind.like("turn.%")),
            event.at.between(times[0], times[1] + _LATEST_MS),
        )
        while rows := (await connection.execute(found.where(event.id > last).order_by(event.id).limit(_AT_ONCE))).all():
            last = rows[-1].id
            changed = [{"of": row.id, "new": text} for row in rows if (text := _without(row.data, turns, names))]
            if changed:
                statement = update(EVENT).where(event.id == bindparam("of")).values(data=bindparam("new"))
                await connection.execute(statement, changed)


async def redacted_texts(connection: AsyncConnection, events: Sequence[tuple[int, str]]) -> list[str]:
    """Return the data of new events, by MAC and data, without what was taken back before they came."""
    names = [(mac, _turn_of(data)) for mac, data in events]
    if not names:
        return []
    turn = CONVERSATION_TURN.c
    found = select(turn.mac, turn.turn, turn.redacted).where(
        tuple_(turn.mac, turn.turn).in_(names), turn.redacted != ""
    )
    gone = {(row.mac, row.turn): row.redacted.split() for row in await connection.execute(found)}
    return [
        _without(data, {name[1]}, [TEXTS[line] for line in gone.get(name, ())]) or data
        for name, (_, data) in zip(names, events, strict=True)
    ]


def _turn_of(data: str) -> str:
    return str(_read(data).get("turn") or "")


def _without(data: str, turns: Collection[str], names: Sequence[str]) -> str:
    """Return the data of an event of one of these turns without these texts; empty if it has none of them."""
    found = _read(data)
    if found.get("turn") not in turns or not any(found.get(name) for name in names):
        return ""
    return msgspec.json.encode({**found, **dict.fromkeys(names, "")}).decode()


def _read(data: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
