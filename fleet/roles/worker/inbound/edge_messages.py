"""Dispatch the events of edges."""

import asyncio
import functools
import logging
from collections.abc import Callable
from typing import assert_never

from fleet.adapters.redis.shards.inbox import Inboxes, StreamEntry
from fleet.ground.errors import Fenced, FleetError
from fleet.ground.log import fields
from fleet.ground.tasks import Backoff
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.sessions.opener import SessionOpener
from fleet.roles.worker.turns.announced import announce
from fleet.roles.worker.turns.turns import WorkerTurns
from fleet.wire.edge_messages import (
    AnswerDoneEvent,
    AnswerInterruptedEvent,
    EdgeEvent,
    SayEvent,
    SessionSilentEvent,
    UtteranceEvent,
    UtteranceTentativeEvent,
    UtteranceWithdrawnEvent,
)

log = logging.getLogger(__name__)

RETRY_SECONDS = 30.0
"""Longest time for which an entry is retried; after it the device no longer waits for the effect."""

_IDLE_PAUSE = 0.2


class InboxReader:
    """Reads the inboxes of the owned shards.

    Args:
        inboxes: Of all shards.
        owned: Returns the shards that this worker owns now.
        sessions: Ends silent sessions.
        turns: Answers utterances.
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
        """By shard: the fence under which its inbox was read, and the id of the last entry."""

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
                    work = functools.partial(self._handle, shard, entry, entry.event)
                    shard.executor.submit(entry.event.device, work)

    def positions(self) -> dict[int, str]:
        """Return the id of the last entry read, by owned shard."""
        return {number: self._after(shard) for number, shard in self._owned().items()}

    def _after(self, shard: Shard) -> str:
        """Return the last entry read under the present lease; a new owner begins with the oldest entry."""
        fence, last = self._read.get(shard.number, ("", "0"))
        return last if fence == shard.owner.fence else "0"

    async def _handle(self, shard: Shard, entry: StreamEntry, event: EdgeEvent) -> None:
        """Handle an entry; retry while Redis or the broker is away. Later entries of the device wait, in order."""
        clock, pauses = asyncio.get_running_loop().time, Backoff(limit=2.0)
        until = clock() + RETRY_SECONDS
        with fields(session=event.session):
            while True:
                try:
                    if not await self._take(shard, entry, event):
                        # Discard it only after its effect: otherwise the shard's next owner would not find it.
                        await self.inboxes.discard([entry])
                    return
                except Fenced:
                    raise
                except FleetError as error:
                    if clock() >= until:
                        log.warning("entry given up", extra={"kind": event.kind, "reason": str(error)})
                        return
                    log.warning("entry will be tried again", extra={"kind": event.kind, "reason": str(error)})
                await pauses.pause()

    async def _take(self, shard: Shard, entry: StreamEntry, event: EdgeEvent) -> bool:
        """Handle the event once; return whether the entry must stay in the inbox."""
        match event:
            case UtteranceEvent() as utterance:
                return await self.turns.begin(shard, entry, utterance)
            case SayEvent() as said:
                return await self.turns.begin(shard, entry, announce(said), said.text)
            case UtteranceTentativeEvent() as tentative:
                self.turns.head_starts.begin(shard, tentative)
            case UtteranceWithdrawnEvent() as withdrawn:
                await self.turns.interrupt(shard, withdrawn)
                self.turns.spoken.pauses.withdraw(withdrawn.device, withdrawn.turn, withdrawn.spoken)
            case (AnswerDoneEvent() | AnswerInterruptedEvent()) as spoken:
                if isinstance(spoken, AnswerInterruptedEvent):
                    await self.turns.interrupt(shard, spoken)
                await self.turns.spoken.take(shard, entry, spoken)
                return True
            case SessionSilentEvent(device=device, session=session, reason=reason):
                if await self.sessions.say_goodbye(shard, device, session, reason):
                    self.turns.cancel(device)
            case other:
                assert_never(other)
        return False
