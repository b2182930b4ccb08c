"""What the events of edges lead to."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from fleet.adapters.redis.shards.inbox import Inboxes, StreamEntry
from fleet.ground.errors import Fenced, FleetError
from fleet.ground.log import fields
from fleet.ground.tasks import Backoff
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
"""Longest time for which an entry that cannot be handled is tried again; its device waits for it no longer."""

_IDLE_PAUSE = 0.2


class InboxReader:
    """Reads the inboxes of the owned shards.

    Args:
        inboxes: Of all shards.
        owned: Returns the shards that this worker owns now.
        sessions: Ends sessions that are silent.
        turns: Answers what was said.
    """

    def __init__(
        self, inboxes: Inboxes, owned: Callable[[], dict[int, Shard]], sessions: SessionOpener, turns: WorkerTurns
    ) -> None:
        self.inboxes = inboxes
        self.sessions = sessions
        self.turns = turns
        self.backoff = Backoff(limit=2.0)
        """Pauses between attempts while Redis is away."""
        self._owned = owned
        self._read: dict[int, tuple[str, str]] = {}
        """For each shard the fence under which it was read, and the last entry."""

    async def run(self) -> None:
        """Read until cancelled.

        Raises:
            Unavailable: Redis is away; call it again.
        """
        while True:
            shards = self._owned()
            if not shards:
                await asyncio.sleep(_IDLE_PAUSE)
                continue
            entries = await self.inboxes.read_shards({n: self._after(shard) for n, shard in shards.items()})
            self.backoff.reset()
            for entry in entries:
                shard = shards[entry.shard]
                self._read[entry.shard] = (shard.owner.fence, entry.id)
                if entry.event is None:
                    shard.spawn(f"entry {entry.id}", self.inboxes.discard([entry]))
                else:
                    shard.executor.submit(entry.event.device, _EntryWork(self, shard, entry, entry.event))

    def positions(self) -> dict[int, str]:
        """Return for each owned shard the last entry that was read."""
        return {number: self._after(shard) for number, shard in self._owned().items()}

    def _after(self, shard: Shard) -> str:
        """Return the last entry read under the present lease: a new owner begins with what was left to it."""
        fence, last = self._read.get(shard.number, ("", "0"))
        return last if fence == shard.owner.fence else "0"


@dataclass(frozen=True, slots=True)
class _EntryWork:
    """What one stream entry asks for."""

    reader: InboxReader
    shard: Shard
    entry: StreamEntry
    event: EdgeEvent

    async def run(self) -> None:
        """Do it, again and again while what it needs is away: those after it wait, so the order stays."""
        clock, pauses, event = asyncio.get_running_loop().time, Backoff(limit=2.0), self.event
        until = clock() + RETRY_SECONDS
        with fields(device=event.device, session=event.session):
            while True:
                try:
                    if not await self._handle():
                        # Only now may it go: what is not done yet is left for the shard's next owner.
                        await self.reader.inboxes.discard([self.entry])
                    return
                except Fenced:
                    raise
                except FleetError as error:
                    if clock() >= until:
                        log.warning("entry given up", extra={"kind": event.kind, "reason": str(error)})
                        return
                    log.warning("entry will be tried again", extra={"kind": event.kind, "reason": str(error)})
                await pauses.pause()

    async def _handle(self) -> bool:
        """Do what the entry asks for; return whether it is still needed."""
        reader, shard = self.reader, self.shard
        match self.event:
            case UtteranceEvent() as heard:
                return await reader.turns.begin(shard, self.entry, heard)
            case AnswerInterruptedEvent() as cut:
                await reader.turns.interrupt(shard, cut)
            case AnswerDoneEvent(turn=turn):
                log.debug("speech done", extra={"turn": turn})
            case SessionSilentEvent(device=device, session=session, reason=reason):
                if await reader.sessions.farewell(shard, device, session, reason):
                    reader.turns.cancel(device)
            case other:
                assert_never(other)
        return False
