"""Dispatch the messages of devices."""

import asyncio
import logging
from collections.abc import Awaitable
from time import monotonic
from typing import Final, assert_never

from fleet.adapters.redis.devices.devices import PresenceChange
from fleet.adapters.redis.sessions.sessions import SessionRecord
from fleet.core import reports
from fleet.core.wake_words import LONGEST_QUESTION
from fleet.ground.loop_budget import LoopBudget
from fleet.ground.metrics import broker as metrics
from fleet.roles.worker.calls.device_calls import DeviceCalls
from fleet.roles.worker.inbound.awaited_answers import AwaitedAnswers
from fleet.roles.worker.inbound.presences import Presences
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.ownership.waiting_presence import WaitingPresence
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.sessions.broker_boot import mark_lost_devices
from fleet.roles.worker.sessions.discovery import Discovery
from fleet.roles.worker.sessions.opener import LeaveReason, SessionOpener
from fleet.roles.worker.sessions.registration import Registrations
from fleet.roles.worker.sessions.replaced import ReplacedSessions
from fleet.roles.worker.sessions.returns import ReturnedDevices
from fleet.roles.worker.turns.turns import WorkerTurns
from fleet.wire import dialects
from fleet.wire.edge_messages import (
    AbortAnswerCommand,
    DetectedTextCommand,
    DeviceReturnedCommand,
    EdgeCommand,
    StartListeningCommand,
    StopListeningCommand,
)
from fleet.wire.json_text import parsing_cost
from fleet.wire.messages import (
    AbortEvent,
    AnswerStopCommand,
    BadRequestEvent,
    DetectEvent,
    DeviceEvent,
    GoodbyeCommand,
    GoodbyeEvent,
    HelloEvent,
    IgnoredEvent,
    ListenStartEvent,
    ListenStopEvent,
    MalformedEvent,
    NotificationEvent,
    RegisterToolsEvent,
    ResponseEvent,
)

log = logging.getLogger(__name__)

ABSENCE_SECONDS = 15.0
"""Time for an offline device to return before its session ends.

Firmware reconnects after 10 s, and its audio continues meanwhile.
"""

LONGEST_REASON: Final = 64
"""Characters of the reason of an abort; firmware's longest has 18. An inbox bounds its messages, not their size."""

_HELLO_LATENCY: Final = metrics.hello_latency.tally()

_ForwardedEvent = ListenStartEvent | ListenStopEvent | DetectEvent | AbortEvent


class DeviceDispatcher:
    """Handles the messages of devices and their presence."""

    def __init__(
        self,
        resources: WorkerResources,
        session_opener: SessionOpener,
        turns: WorkerTurns,
        calls: DeviceCalls,
        discovery: Discovery,
        registrations: Registrations,
    ) -> None:
        self._resources = resources
        self._session_opener = session_opener
        self._turns = turns
        self._calls = calls
        self._discovery = discovery
        self._registrations = registrations
        self._replaced = ReplacedSessions()
        self._returns = ReturnedDevices(session_opener.apologies)
        self._parsing = LoopBudget()
        self.awaited = AwaitedAnswers(calls, discovery.pending, self._parsing)
        """Answers that need no turn in the order of their device."""
        self.presences = Presences()
        """Presences that wait."""
        self.lists = discovery.lists
        """The tool lists that are being read."""

    async def receive(self, shard: Shard, kind: str, mac: str, message: bytes | WaitingPresence) -> None:
        """Handle one message of a device, its presence, or the start of the broker."""
        if isinstance(message, WaitingPresence):
            await self._on_presence(shard, mac, message)
        elif kind == "boot":
            await mark_lost_devices(self._resources.devices, shard, message, self._on_offline)
        else:
            cost = parsing_cost(message)
            if not self._parsing.take_now(cost, mac):
                await self._parsing.take(cost, mac)
            dialect, event = dialects.receive(message)
            if isinstance(event, MalformedEvent):
                dialect, event = await self._read_again(mac, message, dialect, event)
            # Nothing but a coroutine of the event: each one more costs as much as to read the frame.
            if work := self._work(shard, mac, dialect, event):
                await work

    async def _read_again(
        self, mac: str, payload: bytes, dialect: str, event: MalformedEvent
    ) -> tuple[str, DeviceEvent]:
        """Return dialect and event of a frame that shows no dialect: it is read in the dialect of its device."""
        own = dialects.find((await self._resources.devices.read(mac)).dialect)
        return (dialect, event) if own.name == dialect else (own.name, own.receive(payload))

    def _work(self, shard: Shard, mac: str, dialect: str, event: DeviceEvent) -> Awaitable[None] | None:
        """Return what an event asks for; None if it is done."""
        match event:
            # What comes most often is first.
            case HelloEvent():
                return self._hello(shard, mac, dialect, event)
            case GoodbyeEvent():
                return self._close(shard, mac, event.session)
            case ResponseEvent():
                return self._answer(shard, mac, dialect, event)
            case ListenStartEvent() | ListenStopEvent() | DetectEvent() | AbortEvent():
                return self._forward(shard, mac, dialect, event)
            case RegisterToolsEvent():
                return self._registrations.register(shard, mac, event, dialect)
            case BadRequestEvent():
                self._registrations.reject(shard, mac, event, dialect)
            case NotificationEvent():
                return self._report(shard, mac, event)
            case IgnoredEvent():
                log.debug("message ignored", extra={"kind": event.kind})
            case MalformedEvent():
                metrics.malformed.add("device")
                log.warning("malformed message", extra={"reason": event.reason})
            case _:
                assert_never(event)
        return None

    async def _hello(self, shard: Shard, mac: str, dialect: str, hello: HelloEvent) -> None:
        self._returns.cancel(mac)
        self._turns.cancel(mac)
        begun = monotonic()
        opened = await self._session_opener.answer_hello(shard, mac, hello, dialect)
        _HELLO_LATENCY.observe(monotonic() - begun)
        if opened and opened.old_session:
            self._replaced.note(mac, opened.old_session)
        if opened and hello.mcp and not opened.tools_known:
            self._discovery.start(shard, mac, dialect)

    async def _forward(self, shard: Shard, mac: str, dialect: str, event: _ForwardedEvent) -> None:
        shard.check()
        # An abort ends the turn before the edge stops its answer. The turn of a typed text may name no session.
        if event.session and (not isinstance(event, AbortEvent) or self._turns.cancel_in(mac, event.session)):
            edge = await self._resources.sessions.forward(shard.owner, mac, _command_of(mac, event.session, event))
            if edge and not self._session_opener.is_dead(edge):
                return
        session = await self._resources.sessions.read(mac)
        if session is not None and self._session_opener.is_dead(session.edge):
            await self._end_lost(shard, mac, session)
            return
        known = session and (event.session in ("", session.id) or self._replaced.contains(mac, event.session))
        if session is None or not known:
            await self._reject_outdated(shard, mac, dialect, event)
            return
        if isinstance(event, AbortEvent):
            self._turns.cancel(mac)
        shard.check()
        await self._resources.inboxes.to_edge(session.edge, _command_of(mac, session.id, event))

    async def _reject_outdated(self, shard: Shard, mac: str, dialect: str, event: _ForwardedEvent) -> None:
        """Answer a message of an ended session: on a goodbye with its id the device closes it and can open another."""
        if isinstance(event, AbortEvent):
            # The device is in its speaking state; only `tts stop` ends that.
            shard.publish(mac, AnswerStopCommand(event.session), dialect)
        if not event.session:
            return
        if await self._session_opener.apologies.goodbye_just_sent(mac, event.session):
            log.info("message of a session that has just ended", extra={"session": event.session})
            return
        shard.publish(mac, GoodbyeCommand(event.session), dialect)

    async def _report(self, shard: Shard, mac: str, notice: NotificationEvent) -> None:
        text = reports.write(notice.method, notice.params)
        log.info("device reports", extra={"pii": {"report": text}})
        await self._resources.reports.add(shard.owner, mac, text)

    async def _answer(self, shard: Shard, mac: str, dialect: str, answer: ResponseEvent) -> None:
        if self._discovery.pending.resolve(mac, answer.id, answer):
            return
        if not await self._calls.answer(shard, mac, answer):
            log.info("answer to no pending call", extra={"id": answer.id[:32]})
            await self._discovery.resume(shard, mac, dialect, answer)

    async def _on_presence(self, shard: Shard, mac: str, waiting: WaitingPresence) -> None:
        devices = self._resources.devices
        async with self.presences.place(waiting) as message:
            if message is None:
                return
            change = await devices.appear(
                mac, online=message.online, epoch=message.epoch, user=message.user, owner=shard.owner
            )
        if not change.applied:
            return
        log.info("device online" if message.online else "device offline")
        if not message.online:
            self._returns.cancel(mac)
            if change.session and message.expired:
                await self._close(shard, mac, change.session, "absent")
            self._on_offline(shard, mac, "" if message.expired else change.session)
            return
        self._calls.reconnect(mac)
        if dialects.capabilities(change.dialect).lists_tools:
            self._discovery.restart(shard, mac, change.dialect, change.device)
        await self._on_online(shard, mac, change)

    def _on_offline(self, shard: Shard, mac: str, session: str) -> None:
        self._calls.disconnect(mac)
        self._discovery.pending.disconnect(mac)
        if session:
            shard.spawn(f"absence {mac}", self._close_if_absent(shard, mac, session))

    async def _on_online(self, shard: Shard, mac: str, change: PresenceChange) -> None:
        """End the speaking or listening state in which a device may have reconnected.

        A device speaks until `tts stop`, which it may have missed: its edge repeats it. If the session has ended, a
        goodbye ends any state. A device that had no session is sent nothing: it may be a registrar.
        """
        if change.session:
            returned = DeviceReturnedCommand(device=mac, session=change.session)
            edge = await self._resources.sessions.forward(shard.owner, mac, returned)
            if edge and not self._session_opener.is_dead(edge):
                return
        session = await self._resources.sessions.read(mac) if change.session else None
        if session is not None and not self._session_opener.is_dead(session.edge):
            returned = DeviceReturnedCommand(device=mac, session=session.id)
            await self._resources.inboxes.to_edge(session.edge, returned)
        elif session is not None:
            await self._end_lost(shard, mac, session)
        elif last := change.session or change.gone:
            # It may have missed the goodbye, and would go on in a session that no edge serves.
            self._returns.schedule(shard, mac, last, change.dialect, apology=change.apology)

    async def _end_lost(self, shard: Shard, mac: str, session: SessionRecord) -> None:
        if await self._session_opener.end_lost(shard, mac, session.id, session.dialect):
            self._turns.cancel(mac)

    async def _close_if_absent(self, shard: Shard, mac: str, session: str) -> None:
        await asyncio.sleep(ABSENCE_SECONDS)
        if not (await self._resources.devices.read(mac)).online:
            await self._close(shard, mac, session, "absent")

    async def _close(self, shard: Shard, mac: str, session: str, reason: LeaveReason = "device") -> None:
        if await self._session_opener.close(shard, mac, session, reason):
            self._turns.cancel(mac)
            self._turns.spoken.pauses.leave(mac)


def _command_of(device: str, session: str, event: _ForwardedEvent) -> EdgeCommand:
    match event:
        case ListenStartEvent():
            return StartListeningCommand(device=device, session=session, mode=event.mode)
        case ListenStopEvent():
            return StopListeningCommand(device=device, session=session)
        case DetectEvent():
            # One character beyond the limit shows the edge that the text is too long.
            text = event.text[: LONGEST_QUESTION + 1]
            return DetectedTextCommand(device=device, session=session, text=text)
        case AbortEvent():
            return AbortAnswerCommand(device=device, session=session, reason=event.reason[:LONGEST_REASON])
        case _:
            assert_never(event)
