"""End the sessions of dead edges: their devices get a goodbye, so that they open new sessions."""

import asyncio
import functools
import logging
from collections.abc import Callable, Mapping

from fleet.adapters.redis.sessions.sessions import Sessions
from fleet.ground.errors import FleetError
from fleet.ground.tasks import Backoff, keep_running
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.sessions.edge_directory import EdgeDirectory
from fleet.roles.worker.sessions.opener import SessionOpener
from fleet.roles.worker.turns.turns import WorkerTurns

log = logging.getLogger(__name__)

CHECK_SECONDS = 1.0
_AT_ONCE = 500
_BATCH_SECONDS = 0.5
"""Pause between two batches: of one worker at most a thousand devices a second open new sessions."""


class DeadEdgeReaper:
    """Finds and ends the sessions of dead edges in the owned shards.

    It also finds sessions of edges that ended before this worker took over the shard.

    Args:
        sessions: The sessions by their edges.
        directory: Which edges are alive.
        owned: Returns the shards that this worker owns now.
        session_opener: Ends the sessions.
        turns: Ends their turns.
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
        """Check until cancelled."""
        backoff = Backoff(limit=2.0)
        await keep_running("dead edges", lambda: self._repeat(backoff), backoff)

    async def _repeat(self, backoff: Backoff) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            for shard in list(self._owned().values()):
                await self._end_sessions(shard)
            backoff.reset()

    async def _end_sessions(self, shard: Shard) -> None:
        # Only while connected: otherwise the sessions would end without a goodbye.
        while self._directory.reliable and shard.connected and shard.held:
            present = self._directory.present
            found = await self._sessions.of_dead_edges(shard.owner, shard.number, present, _AT_ONCE)
            if not found:
                return
            async with asyncio.TaskGroup() as group:
                for mac, session in found:
                    group.create_task(self._end(shard, mac, session), name=f"lost session {mac}")
            await asyncio.sleep(_BATCH_SECONDS)

    async def _end(self, shard: Shard, mac: str, session: str) -> None:
        try:
            await shard.executor.run(mac, functools.partial(self.end, shard, mac, session))
        except FleetError as error:
            log.warning(
                "session of a dead edge not ended", extra={"device": mac, "session": session, "reason": str(error)}
            )

    async def end(self, shard: Shard, mac: str, session: str) -> None:
        """End a session with a goodbye, or show the apology that an earlier worker left."""
        if not session:
            # Another worker ended the session and died before it showed the apology.
            await self._session_opener.apologies.show(shard, mac)
            return
        found = await self._sessions.read(mac)
        if await self._session_opener.end_lost(shard, mac, session, found.dialect if found else ""):
            self._turns.cancel(mac)
