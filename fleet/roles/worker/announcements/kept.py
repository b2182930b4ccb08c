"""Texts that were kept for a device until it woke up, and are spoken before the next answer."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from fleet.adapters.redis.sessions.conversations import Begun
from fleet.adapters.redis.sessions.sessions import SessionRecord
from fleet.roles.worker.announcements.order import Wanted
from fleet.wire.edge_messages import UtteranceEvent

AFTER_HELLO_SECONDS: Final = 3.0
"""How long after its hello the first turn of a device waits for the texts that are kept for it. Control hands them over
within a second, and nobody has said his first words sooner."""


@dataclass(slots=True, eq=False)
class KeptText:
    """A text that waits to be spoken in a session."""

    session: str
    text: str
    language: str
    note: Callable[[str], Awaitable[None]]
    """Notes, under the fence, the turn in whose answer it is spoken."""
    wanted: Wanted
    turn: str = ""
    """The turn that has taken it; empty while none has."""
    handed: bool = False
    """Whether it is in the journal of that turn, so that it is spoken."""
    decided: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the turn that took it has handed it over, or has ended without."""


class KeptTexts:
    """Has at most one text of a device: it is told one thing at a time."""

    def __init__(self) -> None:
        self._waiting: dict[str, KeptText] = {}
        self._awaited: dict[str, asyncio.Event] = {}

    @contextmanager
    def offered(self, mac: str, text: KeptText) -> Iterator[None]:
        """Let a turn that begins during the block take a text."""
        self._waiting[mac] = text
        if awaited := self._awaited.get(mac):
            awaited.set()
        try:
            yield
        finally:
            del self._waiting[mac]

    @asynccontextmanager
    async def taken(self, begun: Begun, utterance: UtteranceEvent) -> AsyncIterator[KeptText | None]:
        """Give the block the text with which the answer to a turn is to begin; wait for it if it may still come.

        At the end of the block the turn has done all it can with it.
        """
        session, turn = begun.session, utterance.turn
        text = None
        if session.kept and not utterance.typed and begun.journal is None and not begun.late:
            text = await self._take(session, turn)
        try:
            yield text
        finally:
            if text is not None and text.turn == turn:
                text.decided.set()

    def give_back(self, mac: str, turn: str) -> None:
        """Let another turn take the text that a turn has taken: the user has heard nothing of it."""
        text = self._waiting.get(mac)
        if text is not None and text.turn == turn:
            text.turn, text.handed = "", False
            text.decided.clear()

    async def _take(self, session: SessionRecord, turn: str) -> KeptText | None:
        mac = session.device
        if mac not in self._waiting:
            await self._wait(mac, session.kept)
        text = self._waiting.get(mac)
        if text is None or text.turn or text.session != session.id:
            return None
        text.turn, wanted = turn, False
        try:
            # The device may have another tenant since it was handed over, or nobody may want it told any more.
            wanted = await text.wanted()
        finally:
            if not wanted:
                text.decided.set()
        return text if wanted else None

    async def _wait(self, mac: str, began: int) -> None:
        # The clock of Redis may be another one.
        left = min(began + AFTER_HELLO_SECONDS - datetime.now(UTC).timestamp(), AFTER_HELLO_SECONDS)
        if left <= 0:
            return
        awaited = self._awaited[mac] = asyncio.Event()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await awaited.wait()
        finally:
            if self._awaited.get(mac) is awaited:
                del self._awaited[mac]
