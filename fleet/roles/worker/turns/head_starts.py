"""Prepare the answers to utterances that may still go on, without writing, publishing or calling anything."""

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field

from fleet.adapters.redis.sessions.conversations import Begun
from fleet.ground.metrics import turns as timed
from fleet.ground.tracing import spans
from fleet.roles.worker.calls.device_calls import DeviceCalls
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.sessions.discovery import Discovery
from fleet.roles.worker.turns.head_start import LONGEST_SECONDS, HeadStart
from fleet.roles.worker.turns.turn import WorkerTurn
from fleet.wire.edge_messages import PrepareSentenceCommand, UtteranceEvent, UtteranceTentativeEvent

MOST = 64
"""Head starts of a worker at a time, over all devices; further utterances get none."""


@dataclass(slots=True, eq=False)
class _Ahead:
    turn: str
    start: HeadStart | None = None
    task: asyncio.Task[object] = field(init=False)


class HeadStarts:
    """The head starts of one worker, at most one for each device.

    Args:
        resources: Of the worker.
        calls: Of the worker; nothing is called here.
        discovery: Of the worker. A request without the device's tools would be made in vain.
    """

    def __init__(self, resources: WorkerResources, calls: DeviceCalls, discovery: Discovery) -> None:
        self._resources = resources
        self._calls = calls
        self._discovery = discovery
        self._ahead: dict[str, _Ahead] = {}
        self._committed: deque[str] = deque(maxlen=MOST)

    def begin(self, shard: Shard, event: UtteranceTentativeEvent) -> None:
        """Ask the model in the background; a newer utterance of the device replaces an older one."""
        if event.turn in self._committed:
            # It was overtaken on its way.
            return
        self.withdraw(event.device)
        if len(self._ahead) >= MOST:
            timed.head_starts.add("refused")
            return
        ahead = self._ahead[event.device] = _Ahead(event.turn)
        ahead.task = shard.spawn(f"head start {event.device}", self._run(shard, event, ahead))
        ahead.task.add_done_callback(lambda _: self._forget(event.device, ahead))

    def withdraw(self, mac: str, turn: str | None = None) -> bool:
        """Close the request of a device, if `turn` is None or its name; return whether there was one."""
        ahead = self._ahead.get(mac)
        if ahead is None or turn not in (None, ahead.turn):
            return False
        ahead.task.cancel()
        self._forget(mac, ahead)
        return True

    def begun_for(self, utterance: UtteranceEvent) -> HeadStart | None:
        """Return the answer that was read ahead for a turn, if there is one."""
        self._committed.append(utterance.turn)
        ahead = self._ahead.get(utterance.device)
        if ahead and ahead.turn == utterance.turn and ahead.start:
            return ahead.start
        self.withdraw(utterance.device)
        return None

    async def _run(self, shard: Shard, event: UtteranceTentativeEvent, ahead: _Ahead) -> None:
        mac, resources = event.device, self._resources
        if await self._discovery.wait_until_done(mac, LONGEST_SECONDS) == "late":
            return
        session = await resources.sessions.read(mac)
        if session is None or session.id != event.session or not session.edge:
            return
        heard = UtteranceEvent(
            device=mac, session=event.session, turn=event.turn, text=event.text, language=event.language
        )
        with spans.span("head start", {"fleet.turn": event.turn}):
            turn = WorkerTurn(resources, self._calls, shard, Begun(session), heard)
            model, request, language = await turn.ask_ahead()
            ahead.start = HeadStart(model, request)
            announcement = PrepareSentenceCommand(
                device=mac, session=session.id, turn=event.turn, text="", language=language, agent=request.agent
            )
            with suppress(TimeoutError):
                await ahead.start.read(resources.inboxes, session.edge, announcement)

    def _forget(self, mac: str, ahead: _Ahead) -> None:
        if self._ahead.get(mac) is ahead:
            del self._ahead[mac]
            if ahead.start:
                timed.head_starts.add("used" if ahead.start.used else "wasted")
