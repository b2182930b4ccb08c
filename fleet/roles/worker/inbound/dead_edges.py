"""Sessions that lost their edge: nobody hears or speaks in them any more, and their devices must hear a goodbye."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fleet.adapters.redis.sessions.sessions import Sessions
from fleet.ground.errors import FleetError
from fleet.ground.tasks import Backoff, keep_running
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.sessions.edge_directory import EdgeDirectory
from fleet.roles.worker.sessions.opener import SessionOpener
from fleet.roles.worker.turns.turns import WorkerTurns

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
_AT_ONCE = 500
_BATCH_SECONDS = 0.5
"""Pause between two batches: at most a thousand devices a second of one worker begin anew."""


class DeadEdgeReaper:
    """Looks for them in the owned shards, also for those of edges that ended while nobody looked.

    Args:
        sessions: The sessions by their edges.
        directory: Knows which edges live.
        owned: The shards that this worker owns now.
        session_opener: Ends them.
        turns: Ends what still runs for them.
    """

    def __init__(
        self,
        sessions: Sessions,
        directory: EdgeDirectory,
        owned: Callable[[], Mapping[int, Shard]],
        session_opener: SessionOpener,
        turns: WorkerTurns,
    ) -> None:
        self._sessions = sessions
        self._directory = directory
        self._owned = owned
        self._session_opener = session_opener
        self._turns = turns

    async def run(self) -> None:
        """Look until cancelled."""
        backoff = Backoff(limit=2.0)
        await keep_running("orphans", lambda: self._follow(backoff), backoff)

    async def _follow(self, backoff: Backoff) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for shard in list(self._owned().values()):
                await self._look(shard)
            backoff.reset()

    async def _look(self, shard: Shard) -> None:
        # Without a connection they would hear no goodbye, and would be forgotten.
        while self._directory.sure and shard.connected and shard.held:
            present = self._directory.present
            found = await self._sessions.of_dead_edges(shard.owner, shard.number, present, _AT_ONCE)
            if not found:
                return
            async with asyncio.TaskGroup() as group:
                for mac, session in found:
                    group.create_task(self._end(shard, mac, session), name=f"orphan {mac}")
            await asyncio.sleep(_BATCH_SECONDS)

    async def _end(self, shard: Shard, mac: str, session: str) -> None:
        try:
            await shard.executor.run(mac, _AbandonedSession(self, shard, mac, session))
        except FleetError as error:
            log.warning("orphan not ended", extra={"device": mac, "session": session, "reason": str(error)})

    async def end(self, shard: Shard, mac: str, session: str) -> None:
        """Say goodbye in a session, or show why an earlier worker ended it."""
        if not session:
            # Its session was ended by a worker that died before it showed why.
            await self._session_opener.apologies.show(shard, mac)
            return
        found = await self._sessions.read(mac)
        if await self._session_opener.abandon(shard, mac, session, found.dialect if found else ""):
            self._turns.cancel(mac)


@dataclass(frozen=True, slots=True)
class _AbandonedSession:
    """A session whose edge died."""

    reaper: DeadEdgeReaper
    shard: Shard
    mac: str
    session: str

    async def run(self) -> None:
        await self.reaper.end(self.shard, self.mac, self.session)
