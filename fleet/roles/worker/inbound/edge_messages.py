"""What the mail of edges leads to."""

import asyncio
import logging
from collections.abc import Callable
from typing import assert_never

from fleet.adapters.redis.shards.inbox import Inboxes, StreamEntry
from fleet.ground.errors import Fenced, FleetError
from fleet.ground.log import fields
from fleet.ground.tasks import Backoff, keep_running
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.sessions.opener import SessionOpener
from fleet.roles.worker.turns.turns import WorkerTurns
from fleet.wire.edge_messages import (
    AnswerDoneEvent,
    AnswerInterruptedEvent,
    EdgeEvent,
    SessionSilentEvent,
    UtteranceEvent,
)

log = logging.getLogger(__name__)

RETRY_SECONDS = 30.0
"""Longest time for which a letter that cannot be handled is tried again; its device waits for it no longer."""

_IDLE_PAUSE = 0.2


class InboxReader:
    """Reads the mailboxes of the owned shards."""

    def __init__(
        self, mailboxes: Inboxes, owned: Callable[[], dict[int, Shard]], receptionist: SessionOpener, turns: WorkerTurns
    ) -> None:
        self._mailboxes = mailboxes
        self._owned = owned
        self._receptionist = receptionist
        self._turns = turns
        self._read: dict[int, tuple[str, str]] = {}
        """For each shard the fence under which it was read, and the last letter."""

    async def run(self) -> None:
        backoff = Backoff(limit=2.0)
        await keep_running("mailboxes", lambda: self._follow(backoff), backoff)

    async def _follow(self, backoff: Backoff) -> None:
        while True:
            shards = self._owned()
            if not shards:
                await asyncio.sleep(_IDLE_PAUSE)
                continue
            letters = await self._mailboxes.read_shards({n: self._after(shard) for n, shard in shards.items()})
            backoff.reset()
            for letter in letters:
                shard = shards[letter.shard]
                self._read[letter.shard] = (shard.owner.fence, letter.id)
                shard.spawn(f"letter {letter.id}", self._deliver(shard, letter))

    def positions(self) -> dict[int, str]:
        """Return for each owned shard the last letter that was read."""
        return {number: self._after(shard) for number, shard in self._owned().items()}

    def _after(self, shard: Shard) -> str:
        """Return the last letter read under the present lease: a new owner begins with what was left to it."""
        fence, last = self._read.get(shard.number, ("", "0"))
        return last if fence == shard.owner.fence else "0"

    async def _deliver(self, shard: Shard, letter: StreamEntry) -> None:
        mail = letter.mail
        if mail is None:
            await self._mailboxes.discard([letter])
            return
        with fields(device=mail.device, session=mail.session):
            await shard.lanes.run(mail.device, lambda: self._persist(shard, letter, mail))

    async def _persist(self, shard: Shard, letter: StreamEntry, mail: EdgeEvent) -> None:
        """Handle a letter, again and again while what it needs is away: those after it wait, so the order stays."""
        clock, pauses = asyncio.get_running_loop().time, Backoff(limit=2.0)
        until = clock() + RETRY_SECONDS
        while True:
            try:
                # Only now may it go: what is not done yet is left for the shard's next owner.
                if not await self._handle(shard, letter, mail):
                    await self._mailboxes.discard([letter])
                return
            except Fenced:
                raise
            except FleetError as error:
                if clock() >= until:
                    log.warning("letter given up", extra={"kind": mail.kind, "reason": str(error)})
                    return
                log.warning("letter will be tried again", extra={"kind": mail.kind, "reason": str(error)})
            await pauses.pause()

    async def _handle(self, shard: Shard, letter: StreamEntry, mail: EdgeEvent) -> bool:
        """Do what a letter asks for; return whether it is still needed."""
        match mail:
            case UtteranceEvent():
                return await self._turns.begin(shard, letter, mail)
            case AnswerInterruptedEvent():
                await self._turns.interrupt(shard, mail)
            case AnswerDoneEvent():
                log.debug("speech done", extra={"turn": mail.turn})
            case SessionSilentEvent():
                if await self._receptionist.farewell(shard, mail.device, mail.session, mail.reason):
                    self._turns.cancel(mail.device)
            case _:
                assert_never(mail)
        return False
