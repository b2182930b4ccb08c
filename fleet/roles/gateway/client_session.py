"""The session of a connection, and the access of a turn to it."""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TypeVar

from fleet.adapters.redis.sessions.gateway_sessions import GatewaySession, GatewaySessions, new_id
from fleet.core.ports import Message
from fleet.core.proxies import site
from fleet.core.server_tools import Persona
from fleet.ground.errors import Unavailable
from fleet.wire.gateway import RequestRefused

log = logging.getLogger(__name__)

T = TypeVar("T")

STORE_SECONDS = 2.0
"""Longest wait for Redis if the turn can continue without it, because a user waits for the answer."""

_AWAY = RequestRefused("SESSION_ERROR", "Session unavailable", "The store of sessions cannot be reached now")


class ClientSession:
    """The session of one connection.

    While Redis does not answer, sessions have no history and cannot be resumed.

    Args:
        sessions: The store of sessions.
        address: The client's; sessions are shared fairly among addresses.
    """

    def __init__(self, sessions: GatewaySessions, address: str) -> None:
        self._sessions = sessions
        self._site = site(address)
        self.id = ""
        """Of the session; empty after its end."""
        self.resumed = False
        """Whether the client resumed it by its id."""
        self.found: GatewaySession | None = None
        """As Redis had it when it was last asked; None if it is away."""
        self._kept = False

    async def begin(self) -> None:
        """Begin a new session."""
        self.resumed = False
        try:
            self.found = await _soon(self._sessions.begin(_now(), self._site))
            self.id, self._kept = self.found.id, True
        except Unavailable as error:
            log.warning("session not stored", extra={"reason": str(error)})
            self.id, self._kept, self.found = new_id(), False, None

    async def resume(self, session: str) -> RequestRefused | None:
        """Continue an earlier session by its id; return the refusal if that is not possible."""
        if session == self.id and not self._kept:
            return None
        try:
            found = await self._sessions.read(session, _now())
        except Unavailable as error:
            log.warning("session not resumed", extra={"reason": str(error)})
            return _AWAY
        if found is None:
            return RequestRefused("SESSION_ERROR", "Session not found", "There is no such session, or it has expired")
        self.id, self.resumed, self._kept, self.found = session, True, True, found
        return None

    async def lives(self) -> bool:
        """Whether the session still exists: it may have expired, or another connection may have ended it."""
        self.found = None
        if not self.id:
            return False
        if self._kept:
            with suppress(Unavailable):
                self.found = await _soon(self._sessions.read(self.id, _now()))
                return self.found is not None
        return True

    async def end(self) -> None:
        """End the session."""
        session, self.id = self.id, ""
        try:
            await self._sessions.end(session)
        except Unavailable as error:
            log.warning("session not ended", extra={"reason": str(error)})


class SessionNotes:
    """Reads and writes the session for one turn.

    Args:
        sessions: The store of sessions.
        session: The session's id.
        found: The session, if it was read a moment ago.
    """

    def __init__(self, sessions: GatewaySessions, session: str, found: GatewaySession | None = None) -> None:
        self._sessions = sessions
        self.session = session
        self._found = found
        self._away = False

    async def read(self) -> GatewaySession:
        """Return the session; an empty one if it cannot be read."""
        if self._found is not None:
            return self._found
        try:
            return await _soon(self._sessions.read(self.session, _now())) or GatewaySession(self.session)
        except Unavailable as error:
            log.warning("session not read", extra={"reason": str(error)})
            self._away = True
            return GatewaySession(self.session)

    async def remember(self, question: str, answer: str) -> None:
        """Add a question and its answer to the history."""
        if self._away:
            return
        messages = (Message("user", question), Message("assistant", answer))
        try:
            await _soon(self._sessions.remember(self.session, messages, _now()))
        except Unavailable as error:
            log.warning("turn not stored", extra={"reason": str(error)})

    async def change(self, persona: Persona) -> None:
        """Store a new persona."""
        try:
            await _soon(self._sessions.change(self.session, persona))
        except Unavailable as error:
            log.warning("persona not stored", extra={"reason": str(error)})


def shown(session: str) -> str:
    """Return the name of a session for the log, because its id is a secret."""
    return hashlib.sha256(session.encode(errors="replace")).hexdigest()[:8]


async def _soon(work: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(STORE_SECONDS):
            return await work
    except TimeoutError:
        raise Unavailable("Redis: no answer in time") from None


def _now() -> datetime:
    return datetime.now(UTC)
