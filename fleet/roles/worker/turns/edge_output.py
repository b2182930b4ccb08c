"""The commands of one answer for its edge."""

import asyncio
from collections.abc import Sequence
from typing import Final

from fleet.adapters.redis.sessions.sessions import SessionRecord
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.wire.edge_messages import EdgeCommand, EndAnswerCommand, TurnProgressCommand

MOST_AT_ONCE: Final = 64
"""Messages of a turn that are sent without a pause: an edge keeps no more sentences, and drops the others."""
MOST_PER_SECOND: Final = 32
"""Messages of a turn that are sent in a second then. No model writes as many sentences, and nobody can hear them."""


class EdgeOutput:
    """Keeps commands until the journal has what they say.

    The function of Redis that writes the journal sends them too (`post`), which saves a round trip. What it does not
    send goes with `send`: in a Cluster that is everything.

    Args:
        inboxes: Of the edges.
        session: Its edge speaks, if there is one.
        turn: The answered turn.
    """

    def __init__(self, inboxes: Inboxes, session: SessionRecord, turn: str) -> None:
        self._inboxes = inboxes
        self._session = session
        self._turn = turn
        self._posted = 0
        self._free_at = 0.0
        """When the turn may send as many messages at once as it could at its beginning, on the loop's clock."""
        self.waiting: list[EdgeCommand] = []
        """The edge has them after `post` or `send`."""

    async def wait_for_room(self) -> None:
        """Wait before what waits is sent, if the turn has sent very much in a short time.

        All sessions of an edge share its inbox, which drops the oldest messages when it is full: those of others, too.
        """
        if not self._session.edge:
            return
        now = asyncio.get_running_loop().time()
        self._free_at = max(self._free_at, now) + len(self.waiting[self._posted :]) / MOST_PER_SECOND
        pause = self._free_at - now - MOST_AT_ONCE / MOST_PER_SECOND
        if pause > 0:
            await asyncio.sleep(pause)

    def post(self) -> tuple[bytes | str | int, ...]:
        """Return what waits, as the arguments of a function of Redis; call `note_posted` when it has run."""
        return self._inboxes.post_all(self._session.edge, self.waiting[self._posted :])

    def note_posted(self, words: Sequence[bytes | str | int]) -> None:
        """Note that the edge has what `post` returned."""
        _, _, _, count, *_ = words
        self._posted += int(count)

    async def send(self) -> None:
        """Send what waits and was not posted.

        Raises:
            Unavailable: Redis is away; it goes on waiting.
        """
        await self._send(self.waiting[self._posted :])

    async def send_progress(self) -> None:
        """Send that the turn goes on, before what waits."""
        await self._send([TurnProgressCommand(device=self._session.device, session=self._session.id, turn=self._turn)])

    def end(self, index: int) -> None:
        """Let the answer end after so many sentences, if it does not end yet with what waits."""
        if not self.waiting or not isinstance(self.waiting[-1], EndAnswerCommand):
            device, session = self._session.device, self._session.id
            self.waiting.append(EndAnswerCommand(device=device, session=session, turn=self._turn, index=index))

    def clear(self) -> None:
        """Forget what waits."""
        self.waiting.clear()
        self._posted = 0

    async def _send(self, commands: Sequence[EdgeCommand]) -> None:
        if self._session.edge and commands:
            await self._inboxes.to_edge(self._session.edge, *commands)
