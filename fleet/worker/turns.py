"""Which turns run: at most one for each device."""

import asyncio
import logging
from dataclasses import dataclass

from fleet.core.ports import Message
from fleet.store.conversations import Conversations
from fleet.wire.mail import SpeechInterrupted, UtteranceHeard
from fleet.worker.calls import DeviceCalls
from fleet.worker.record import amend
from fleet.worker.resources import Resources
from fleet.worker.shard import Shard
from fleet.worker.turn import Turn

log = logging.getLogger(__name__)

_HALT_SECONDS = 3.0
"""Longest wait until a cancelled turn has written down how far it got."""


@dataclass(slots=True)
class _Running:
    turn: str
    task: asyncio.Task[None]
    cancelled: bool = False


class Turns:
    """Begins, cancels and corrects turns; a newer one ends an older one."""

    def __init__(self, resources: Resources, calls: DeviceCalls) -> None:
        self._resources = resources
        self._calls = calls
        self._running: dict[str, _Running] = {}

    @property
    def _conversations(self) -> Conversations:
        return self._resources.conversations

    async def begin(self, shard: Shard, heard: UtteranceHeard) -> None:
        """Start a turn in the background, once it is written down that it began."""
        mac = heard.device
        running = self._running.get(mac)
        if running is not None and running.turn == heard.turn:
            log.info("utterance delivered again", extra={"turn": heard.turn})
            return
        # What the earlier turn said has its place in the history before this one's.
        await self._halt(mac)
        asked = Message("user", heard.text)
        begun = await self._conversations.begin(shard.owner, mac, heard.session, heard.turn, asked)
        if begun == "gone":
            log.info("utterance of a session that is over", extra={"session": heard.session})
        elif begun == "again":
            log.info("utterance delivered again", extra={"turn": heard.turn})
        else:
            turn = Turn(self._resources, self._calls, shard, begun, heard)
            self._add(mac, _Running(heard.turn, shard.spawn(f"turn {mac}", turn.run())))

    def cancel(self, mac: str, turn: str | None = None) -> None:
        """End the device's running turn, or only a certain one; its model request is closed."""
        running = self._running.get(mac)
        # Once: a second time would stop it from writing down how far it got.
        if running is None or running.cancelled or turn not in (None, running.turn):
            return
        running.cancelled = True
        if running.task.cancel():
            log.info("turn cancelled", extra={"turn": running.turn})

    async def interrupt(self, shard: Shard, cut: SpeechInterrupted) -> None:
        """End a turn if it still runs, and remember only what was heard of it."""
        running = self._running.get(cut.device)
        if running is not None and running.turn == cut.turn:
            await self._halt(cut.device)
        await amend(self._conversations, shard.owner, cut.device, cut.turn, cut.spoken)

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
