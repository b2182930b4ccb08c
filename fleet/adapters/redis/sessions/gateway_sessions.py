"""The sessions of the LLM Gateway API: history and persona, readable by every gateway process.

A session is a hash and a list that expire together after their last use. Its id is a secret: a client that knows it may
continue the session.
"""

import re
import secrets
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from fleet.adapters.redis.client.store import Store
from fleet.core.ports import Message
from fleet.core.server_tools import Persona

MOST_MESSAGES = 10
"""Messages of a session's history (the API's document, section 6.2)."""
LONGEST_TEXT = 20_000
"""Characters of one of them that are kept."""

_ID = re.compile(r"[0-9a-f]{32}")
_MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)


@dataclass(frozen=True, slots=True)
class GatewaySession:
    """A session. `history` begins with the oldest message."""

    id: str
    persona: Persona = field(default_factory=Persona)
    history: tuple[Message, ...] = ()
    created: str = ""
    used: str = ""


class GatewaySessions:
    """Makes sessions and finds them again.

    Args:
        store: Redis.
        seconds: Life of a session after its last use.
    """

    def __init__(self, store: Store, seconds: int) -> None:
        self._store = store
        self._seconds = seconds

    async def begin(self, now: datetime) -> GatewaySession:
        """Return a new session; its id has 128 random bits in 32 characters.

        Raises:
            Unavailable: Redis is away.
        """
        at = now.isoformat(timespec="milliseconds")
        session = GatewaySession(new_id(), created=at, used=at)
        await self.keep(session, now)
        return session

    async def keep(self, session: GatewaySession, now: datetime) -> None:
        """Store a session that could not be stored when it began.

        Raises:
            Unavailable: Redis is away.
        """
        persona = session.persona
        fields = {
            "created": session.created or now.isoformat(timespec="milliseconds"),
            "used": now.isoformat(timespec="milliseconds"),
            "language": persona.language,
            "character": persona.character,
        }
        await self._write(session.id, fields, session.history)

    async def read(self, session: str, now: datetime) -> GatewaySession | None:
        """Return a session and prolong it, or None if the id is unknown or has expired.

        Raises:
            Unavailable: Redis is away.
        """
        if not _ID.fullmatch(session):
            return None
        pipe = self._store.client.pipeline(transaction=False)
        pipe.hgetall(_key(session))
        pipe.lrange(_history_key(session), -MOST_MESSAGES, -1)
        found = await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))
        record, lines = cast("tuple[dict[str, str], list[str]]", tuple(found))
        if not record.get("created"):
            return None
        await self._write(session, {"used": now.isoformat(timespec="milliseconds")})
        return GatewaySession(
            session,
            Persona(record.get("language", ""), record.get("character", "")),
            _messages(lines),
            record["created"],
            record.get("used", ""),
        )

    async def remember(self, session: str, messages: Sequence[Message], now: datetime) -> None:
        """Add messages to a session's history; the oldest ones are dropped.

        Raises:
            Unavailable: Redis is away.
        """
        await self._write(session, {"used": now.isoformat(timespec="milliseconds")}, messages)

    async def change(self, session: str, persona: Persona) -> None:
        """Keep a session's new persona.

        Raises:
            Unavailable: Redis is away.
        """
        await self._write(session, {"language": persona.language, "character": persona.character})

    async def end(self, session: str) -> None:
        """Delete a session.

        Raises:
            Unavailable: Redis is away.
        """
        await self._store.ask(self._store.client.delete(_key(session), _history_key(session)))

    async def _write(self, session: str, fields: dict[str, str], messages: Sequence[Message] = ()) -> None:
        key, history = _key(session), _history_key(session)
        pipe = self._store.client.pipeline(transaction=False)
        pipe.hset(key, mapping=cast("Any", fields))
        if messages:
            pipe.rpush(history, *(_line(message) for message in messages))
            pipe.ltrim(history, -MOST_MESSAGES, -1)
        pipe.expire(key, self._seconds)
        pipe.expire(history, self._seconds)
        await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))


def new_id() -> str:
    """Return the id of a new session."""
    return secrets.token_hex(16)


def _line(message: Message) -> str:
    return _MESSAGE.dump_json(replace(message, text=message.text[:LONGEST_TEXT])).decode()


def _messages(lines: Sequence[str]) -> tuple[Message, ...]:
    messages = []
    for line in lines:
        try:
            messages.append(_MESSAGE.validate_json(line))
        except ValidationError:
            continue
    return tuple(messages)


def _key(session: str) -> str:
    return f"gw:{{{session}}}"


def _history_key(session: str) -> str:
    return f"{_key(session)}:h"
