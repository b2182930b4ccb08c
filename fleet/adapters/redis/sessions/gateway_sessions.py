"""The sessions of the LLM Gateway API: history and persona, readable by every gateway process.

A session is a hash and a list that expire together after their last use. Its id is a secret: a client that knows it may
continue the session.
"""

import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from time import monotonic
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from fleet.adapters.redis.client.store import Store
from fleet.core.fair_places import FairPlaces
from fleet.core.ports import Message
from fleet.core.server_tools import Persona

MOST_MESSAGES = 10
"""Messages of a session's history (the API's document, section 6.2)."""
LONGEST_TEXT = 20_000
"""Characters of one of them that are kept."""
MOST_SESSIONS = 10_000
"""Sessions that a process has begun and that have not expired: without history 4 MB of Redis."""

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


class BegunSessions:
    """The sessions that this process has begun and that have not expired.

    Args:
        seconds: Life of a session after its last use.
        most: How many there may be; addresses share them as `FairPlaces` says.
        clock: Returns the time in seconds.
    """

    def __init__(self, seconds: float, most: int = MOST_SESSIONS, clock: Callable[[], float] = monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._places = FairPlaces[str](most)
        self._used: dict[str, float] = {}  # what was used longest ago comes first

    @property
    def most(self) -> int:
        return self._places.most

    def __len__(self) -> int:
        self._forget_expired()
        return len(self._places)

    def add(self, session: str, site: str) -> str | None:
        """Note a new session of a site; return the session that has to end for it, if there is one."""
        self._forget_expired()
        loser = self._places.take(session, site)
        self._used[session] = self._clock()
        if loser is not None:
            del self._used[loser]
        return loser

    def use(self, session: str) -> None:
        """Note that a session was used; one that another process has begun counts there."""
        if self._used.pop(session, None) is not None:
            self._used[session] = self._clock()
            self._places.use(session)

    def remove(self, session: str) -> None:
        """Forget a session that has ended."""
        if self._used.pop(session, None) is not None:
            self._places.leave(session)

    def _forget_expired(self) -> None:
        before = self._clock() - self._seconds
        while self._used and self._used[oldest := next(iter(self._used))] < before:
            self.remove(oldest)


class GatewaySessions:
    """Makes sessions and finds them again.

    Args:
        store: Redis.
        seconds: Life of a session after its last use.
    """

    def __init__(self, store: Store, seconds: int) -> None:
        self._store = store
        self._seconds = seconds
        self.begun = BegunSessions(seconds)
        """Bounds how many sessions there may be."""

    async def begin(self, now: datetime, site: str = "") -> GatewaySession:
        """Return a new session; its id has 128 random bits in 32 characters.

        Where there are too many, one of the site with the most ends for it.

        Raises:
            Unavailable: Redis is away.
        """
        at = now.isoformat(timespec="milliseconds")
        session = GatewaySession(new_id(), created=at, used=at)
        await self.keep(session, now)
        loser = self.begun.add(session.id, site)
        if loser is not None:
            await self.end(loser)
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
        self.begun.use(session)
        found = await self._store.call(
            "fleet_gateway_session",
            [_key(session), _history_key(session)],
            [now.isoformat(timespec="milliseconds"), self._seconds, MOST_MESSAGES],
        )
        if not found:
            return None
        created, used, language, character, *lines = found
        return GatewaySession(session, Persona(language, character), _messages(lines), created, used)

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
        self.begun.remove(session)
        await self._store.ask(self._store.client.delete(_key(session), _history_key(session)))

    async def _write(self, session: str, fields: dict[str, str], messages: Sequence[Message] = ()) -> None:
        self.begun.use(session)
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
