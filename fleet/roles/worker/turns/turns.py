"""Begin, take up and cancel turns, at most one for each device."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from fleet.adapters.redis.sessions.conversations import Begun, Conversations, Opening, Refusal
from fleet.adapters.redis.sessions.replies import Reply
from fleet.adapters.redis.shards.inbox import StreamEntry
from fleet.core.ports import Message
from fleet.ground.errors import Fenced, FleetError, Unavailable
from fleet.ground.log import fields
from fleet.ground.tasks import Backoff
from fleet.ground.tracing import spans
from fleet.roles.worker.announcements.kept import KeptTexts
from fleet.roles.worker.calls.device_calls import DeviceCalls
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.sessions.discovery import Discovery
from fleet.roles.worker.turns.announced import FixedAnswer
from fleet.roles.worker.turns.head_starts import HeadStarts
from fleet.roles.worker.turns.journal_writer import amend, end_abandoned_turn
from fleet.roles.worker.turns.spoken_reports import SpokenReports
from fleet.roles.worker.turns.turn import WorkerTurn
from fleet.wire.edge_messages import (
    AnswerInterruptedEvent,
    UtteranceEvent,
    UtteranceWithdrawnEvent,
)

log = logging.getLogger(__name__)

_CANCEL_SECONDS = 3.0
"""Longest wait until a cancelled turn has written its progress."""
TOOLS_SECONDS = 2.0
"""Longest wait of a turn for the device's tools."""
_MOST_REDIS_ATTEMPTS = 3
"""Attempts at a turn, with the first, while Redis is away."""


@dataclass(slots=True, eq=False)
class _Running:
    """A running turn. Its entry stays in the inbox until it has ended, so that the shard's next owner finds it."""

    shard: Shard
    entry: StreamEntry
    utterance: UtteranceEvent
    said: str = ""
    cancelled: bool = False
    discarded: bool = False
    """Whether the entry is gone from the inbox."""
    work: WorkerTurn | None = None
    task: asyncio.Task[object] = field(init=False)


class WorkerTurns:
    """Begins, takes up, cancels and corrects turns; a newer turn ends an older one."""

    def __init__(
        self, resources: WorkerResources, calls: DeviceCalls, discovery: Discovery, counts: Counter[str]
    ) -> None:
        self._resources = resources
        self._calls = calls
        self._discovery = discovery
        self._counts = counts
        self._running: dict[str, _Running] = {}
        self.spoken = SpokenReports(resources.spoken)
        self.kept = KeptTexts()
        """What is said before the first answers of sessions."""
        self.head_starts = HeadStarts(resources, calls, discovery)
        """Begun before their utterances are certain."""

    @property
    def _conversations(self) -> Conversations:
        return self._resources.conversations

    async def begin(self, shard: Shard, entry: StreamEntry, utterance: UtteranceEvent, said: str = "") -> bool:
        """Write the turn's journal, then start or continue the turn in the background.

        Args:
            shard: Of the device.
            entry: Asks for the turn.
            utterance: What is answered.
            said: The answer, where it is an operator's text; empty if the model answers.

        Returns:
            Whether the entry must stay in the inbox: the turn's task discards it at the end.

        Raises:
            Fenced: Another worker owns the shard.
            Unavailable: Redis is away.
        """
        mac, running = utterance.device, self._running.get(utterance.device)
        if running is not None and running.shard is not shard:
            # A task of an earlier lease that is being cancelled: the fence refuses what it still writes.
            await asyncio.wait([running.task], timeout=_CANCEL_SECONDS)
        elif running is not None and running.utterance.turn == utterance.turn:
            log.info("utterance delivered again", extra={"turn": utterance.turn})
            return running.entry.id == entry.id
        begun = await self._open(shard, entry, utterance)
        if not isinstance(begun, Begun):
            log.info("utterance not answered", extra={"turn": utterance.turn, "reason": begun})
            await self._reply_refusal(shard, utterance, begun)
            return False
        log.debug("turn begun", extra={"turn": utterance.turn, "again": begun.journal is not None})
        if utterance.session:
            self.spoken.pauses.begin(mac, utterance.turn)
        await self._cancel_and_wait(mac)
        fresh = _Running(shard, entry, utterance, said)
        fresh.task = shard.spawn(f"turn {mac}", self._serve(fresh, begun))
        self._add(mac, fresh)
        # Let the task begin: if it were cancelled before its first step, the turn would not be put into the history.
        await asyncio.sleep(0)
        return True

    def cancel(self, mac: str, turn: str | None = None) -> None:
        """Cancel the device's running turn, if `turn` is None or its name; its model request is closed."""
        running = self._running.get(mac)
        # Cancel once: a second time would interrupt the writing of its progress.
        if running is None or running.cancelled or turn not in (None, running.utterance.turn):
            return
        running.cancelled = True
        if running.task.cancel():
            log.info("turn cancelled", extra={"turn": running.utterance.turn})

    def cancel_in(self, mac: str, session: str) -> bool:
        """Cancel the device's running turn, if any; return False if one runs that does not name this session."""
        running = self._running.get(mac)
        if running is not None and running.utterance.session != session:
            return False
        self.cancel(mac)
        return True

    async def interrupt(self, shard: Shard, cut: AnswerInterruptedEvent | UtteranceWithdrawnEvent) -> None:
        """Cancel a turn if it still runs, and correct its history to what was spoken; none if it was withdrawn."""
        prepared, running = self.head_starts.withdraw(cut.device, cut.turn), self._running.get(cut.device)
        if running is not None and running.utterance.turn == cut.turn:
            await self._cancel_and_wait(cut.device)
        elif prepared:
            return
        spoken = cut.spoken if isinstance(cut, AnswerInterruptedEvent) else None
        await amend(self._conversations, shard.owner, cut.device, cut.turn, spoken)
        if cut.spoken == 0:
            self.kept.give_back(cut.device, cut.turn)

    async def _open(self, shard: Shard, entry: StreamEntry, utterance: UtteranceEvent) -> Begun | Refusal:
        mac, settings = utterance.device, self._resources.settings
        terms = settings.turn_seconds, settings.history_messages
        opening = Opening(utterance.session, utterance.turn, Message("user", utterance.text), entry.id)
        begun = await self._conversations.begin(shard.owner, mac, opening, *terms)
        if begun == "busy" and utterance.polite and mac in self._running:
            return begun
        if begun == "busy":
            # The earlier turn must be in the history before this one.
            await self._cancel_and_wait(mac)
            await end_abandoned_turn(self._conversations, shard.owner, mac)
            begun = await self._conversations.begin(shard.owner, mac, opening, *terms)
        if begun == "busy":
            raise Unavailable("the earlier turn does not end")
        return begun

    async def _reply_refusal(self, shard: Shard, utterance: UtteranceEvent, reason: Refusal) -> None:
        """Store the reply to a typed text that is not answered."""
        if not utterance.typed:
            return
        replies = self._resources.replies
        known = await replies.read(utterance.device, utterance.turn)
        if known is not None and not known.over:
            reply = Reply("busy" if reason == "busy" else "interrupted")
            await replies.write(shard.owner, utterance.device, utterance.turn, reply)

    async def _serve(self, running: _Running, begun: Begun | Refusal | None) -> None:
        """Run a turn to its end; take it up again if it failed because Redis was away."""
        utterance = running.utterance
        about = {"fleet.turn": utterance.turn, "fleet.session": utterance.session, "fleet.device": utterance.device}
        pauses, left, name = (
            Backoff(first=0.5, limit=2.0),
            _MOST_REDIS_ATTEMPTS,
            "answer" if utterance.traceparent else "turn",
        )
        with fields(session=utterance.session, turn=utterance.turn), spans.span(name, about, utterance.traceparent):
            async with self._discarding_entry(running):
                while left:
                    try:
                        begun = begun or await self._open(running.shard, running.entry, utterance)
                        if isinstance(begun, Begun):
                            running.work = WorkerTurn(self._resources, self._calls, running.shard, begun, utterance)
                            ahead = self.head_starts.begun_for(utterance)
                            running.work.ahead = FixedAnswer(running.said) if running.said else ahead
                            await self._await_tools(utterance.device, running.work)
                            async with self.kept.taken(begun, utterance) as kept:
                                running.discarded = await running.work.run(kept, running.entry.id)
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
    async def _discarding_entry(self, running: _Running) -> AsyncIterator[None]:
        """Discard the entry when the turn has ended in the block; put a cancelled turn into the history first."""
        try:
            yield
        except asyncio.CancelledError:
            # If the shard ended and not the turn, leave journal and entry: the shard's next owner continues the turn.
            if running.cancelled:
                await self._cut(running)
            raise
        if not running.discarded:
            await self._resources.inboxes.discard([running.entry])

    async def _await_tools(self, mac: str, turn: WorkerTurn) -> None:
        """Wait for a running discovery: otherwise a turn shortly after a boot would have no tools of the device."""
        found = await self._discovery.wait_until_done(mac, TOOLS_SECONDS)
        if found == "late":
            self._counts["tools: too late"] += 1
            log.warning("turn begins before the tools are known", extra={"device": mac})
        if found != "idle":
            turn.begun = replace(turn.begun, context=None)

    async def _cut(self, running: _Running) -> None:
        try:
            if running.work is not None:
                await running.work.cut()
            await self._resources.inboxes.discard([running.entry])
        except (FleetError, TimeoutError) as error:
            log.warning("turn not written to the history", extra={"reason": str(error) or "no answer in time"})

    async def _cancel_and_wait(self, mac: str) -> None:
        """Cancel the device's running turn, and wait until it has written its progress."""
        running = self._running.get(mac)
        if running is not None:
            self.cancel(mac)
            await asyncio.wait([running.task], timeout=_CANCEL_SECONDS)

    def _add(self, mac: str, running: _Running) -> None:
        self._running[mac] = running
        running.task.add_done_callback(lambda _: self._forget(mac, running))

    def _forget(self, mac: str, running: _Running) -> None:
        if self._running.get(mac) is running:
            del self._running[mac]
