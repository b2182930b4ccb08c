"""Which turns run: at most one for each device."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from fleet.adapters.redis.sessions.conversations import Begun, Conversations, Opening, Refusal
from fleet.adapters.redis.sessions.replies import Reply
from fleet.adapters.redis.shards.inbox import StreamEntry
from fleet.core.ports import Message
from fleet.ground.errors import Fenced, FleetError, Unavailable
from fleet.ground.log import fields
from fleet.ground.tasks import Backoff
from fleet.ground.tracing import spans
from fleet.roles.worker.calls.device_calls import DeviceCalls
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.sessions.discovery import Discovery
from fleet.roles.worker.turns.journal_writer import amend, settle_orphan
from fleet.roles.worker.turns.turn import WorkerTurn
from fleet.wire.edge_messages import AnswerInterruptedEvent, UtteranceEvent

log = logging.getLogger(__name__)

_HALT_SECONDS = 3.0
"""Longest wait until a cancelled turn has written down how far it got."""
TOOLS_SECONDS = 2.0
"""Longest wait of a turn for the device's tools."""
_MOST_ATTEMPTS = 3
"""How often this worker takes up a turn of its own that broke off because Redis was away."""


@dataclass(slots=True, eq=False)
class _Running:
    """A turn under way. Its entry stays in the inbox until it has ended: so the shard's next owner finds it."""

    shard: Shard
    entry: StreamEntry
    heard: UtteranceEvent
    cancelled: bool = False
    work: WorkerTurn | None = None
    task: asyncio.Task[object] = field(init=False)


class WorkerTurns:
    """Begins, takes up, cancels and corrects turns; a newer one ends an older one."""

    def __init__(
        self, resources: WorkerResources, calls: DeviceCalls, discovery: Discovery, counts: Counter[str]
    ) -> None:
        self._resources = resources
        self._calls = calls
        self._discovery = discovery
        self._counts = counts
        self._running: dict[str, _Running] = {}

    @property
    def _conversations(self) -> Conversations:
        return self._resources.conversations

    async def begin(self, shard: Shard, entry: StreamEntry, heard: UtteranceEvent) -> bool:
        """Start a turn in the background, or go on with it, once that is written down.

        Returns:
            Whether the entry is still needed: it is discarded when the turn has ended.

        Raises:
            Fenced: The shard is another worker's now.
            Unavailable: Redis is away.
        """
        mac, running = heard.device, self._running.get(heard.device)
        if running is not None and running.shard is not shard:
            # Left over from an earlier lease, and being cancelled: what it still does comes to nothing.
            await asyncio.wait([running.task], timeout=_HALT_SECONDS)
        elif running is not None and running.heard.turn == heard.turn:
            log.info("utterance delivered again", extra={"turn": heard.turn})
            return running.entry.id == entry.id
        begun = await self._open(shard, entry, heard)
        if not isinstance(begun, Begun):
            log.info("utterance not answered", extra={"turn": heard.turn, "reason": begun})
            await self._turn_down(shard, heard, begun)
            return False
        log.debug("turn begun", extra={"turn": heard.turn, "again": begun.journal is not None})
        await self._halt(mac)
        fresh = _Running(shard, entry, heard)
        fresh.task = shard.spawn(f"turn {mac}", self._serve(fresh, begun))
        self._add(mac, fresh)
        # A task that is cancelled before it has begun would leave the turn as it is.
        await asyncio.sleep(0)
        return True

    def cancel(self, mac: str, turn: str | None = None) -> None:
        """End the device's running turn, or only a certain one; its model request is closed."""
        running = self._running.get(mac)
        # Once: a second time would stop it from writing down how far it got.
        if running is None or running.cancelled or turn not in (None, running.heard.turn):
            return
        running.cancelled = True
        if running.task.cancel():
            log.info("turn cancelled", extra={"turn": running.heard.turn})

    async def interrupt(self, shard: Shard, cut: AnswerInterruptedEvent) -> None:
        """End a turn if it still runs, and remember only what was heard of it."""
        running = self._running.get(cut.device)
        if running is not None and running.heard.turn == cut.turn:
            await self._halt(cut.device)
        await amend(self._conversations, shard.owner, cut.device, cut.turn, cut.spoken)

    async def _open(self, shard: Shard, entry: StreamEntry, heard: UtteranceEvent) -> Begun | Refusal:
        mac, seconds = heard.device, self._resources.settings.turn_seconds
        opening = Opening(heard.session, heard.turn, Message("user", heard.text), entry.id)
        begun = await self._conversations.begin(shard.owner, mac, opening, seconds)
        if begun == "busy" and heard.polite and mac in self._running:
            return begun
        if begun == "busy":
            # What the earlier turn said has its place in the history before this one's.
            await self._halt(mac)
            await settle_orphan(self._conversations, shard.owner, mac)
            begun = await self._conversations.begin(shard.owner, mac, opening, seconds)
        if begun == "busy":
            raise Unavailable("the turn before does not end")
        return begun

    async def _turn_down(self, shard: Shard, heard: UtteranceEvent, reason: Refusal) -> None:
        """Tell whoever typed that there will be no answer."""
        if not heard.typed:
            return
        replies = self._resources.replies
        known = await replies.read(heard.device, heard.turn)
        if known is not None and not known.over:
            reply = Reply("busy" if reason == "busy" else "interrupted")
            await replies.write(shard.owner, heard.device, heard.turn, reply)

    async def _serve(self, running: _Running, begun: Begun | Refusal | None) -> None:
        """Run a turn to its end, and take it up again when it broke off because Redis was away for a moment."""
        heard = running.heard
        about = {"fleet.turn": heard.turn, "fleet.session": heard.session, "fleet.device": heard.device}
        pauses, left, name = Backoff(first=0.5, limit=2.0), _MOST_ATTEMPTS, "answer" if heard.traceparent else "turn"
        with fields(session=heard.session, turn=heard.turn), spans.span(name, about, heard.traceparent):
            async with self._remembering(running):
                while left:
                    try:
                        begun = begun or await self._open(running.shard, running.entry, heard)
                        if isinstance(begun, Begun):
                            running.work = WorkerTurn(self._resources, self._calls, running.shard, begun, heard)
                            await self._await_tools(heard.device)
                            await running.work.run()
                        break
                    except Fenced:
                        raise
                    except FleetError as error:
                        left -= 1
                        if not left:
                            raise
                        log.warning("turn broke off", extra={"reason": str(error)})
                    begun = None
                    await pauses.pause()

    @asynccontextmanager
    async def _remembering(self, running: _Running) -> AsyncIterator[None]:
        """Discard the entry when the turn has ended in the block; one that was cancelled is first remembered."""
        try:
            yield
        except asyncio.CancelledError:
            # Not cancelled on purpose, it is left as it is: whoever owns the shard next goes on.
            if running.cancelled:
                await self._cut(running)
            raise
        await self._resources.inboxes.discard([running.entry])

    async def _await_tools(self, mac: str) -> None:
        """Wait for a discovery under way: a turn shortly after a boot would run without the device's tools."""
        if not await self._discovery.settled(mac, TOOLS_SECONDS):
            self._counts["tools: too late"] += 1
            log.warning("turn begins before the tools are known", extra={"device": mac})

    async def _cut(self, running: _Running) -> None:
        try:
            if running.work is not None:
                await running.work.cut()
            await self._resources.inboxes.discard([running.entry])
        except (FleetError, TimeoutError) as error:
            log.warning("turn not remembered", extra={"reason": str(error) or "no answer in time"})

    async def _halt(self, mac: str) -> None:
        """Cancel the device's running turn and wait until it has written down how far it got."""
        running = self._running.get(mac)
        if running is not None:
            self.cancel(mac)
            await asyncio.wait([running.task], timeout=_HALT_SECONDS)

    def _add(self, mac: str, running: _Running) -> None:
        self._running[mac] = running
        running.task.add_done_callback(lambda _: self._forget(mac, running))

    def _forget(self, mac: str, running: _Running) -> None:
        if self._running.get(mac) is running:
            del self._running[mac]
