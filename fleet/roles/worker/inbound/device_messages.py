"""What the messages of devices lead to."""

import asyncio
import logging
from time import monotonic
from typing import assert_never

from fleet.adapters.net.mqtt.loop_budget import LoopBudget
from fleet.adapters.redis.devices.devices import PresenceChange
from fleet.adapters.redis.sessions.sessions import SessionRecord
from fleet.core import reports
from fleet.core.wake_words import LONGEST_QUESTION
from fleet.ground.metrics import broker as metrics
from fleet.roles.worker.calls.device_calls import DeviceCalls
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.sessions.broker_boot import outdate
from fleet.roles.worker.sessions.discovery import Discovery
from fleet.roles.worker.sessions.opener import Leaving, SessionOpener
from fleet.roles.worker.sessions.registration import Registrations
from fleet.roles.worker.sessions.replaced import ReplacedSessions
from fleet.roles.worker.sessions.returns import ReturnedDevices
from fleet.roles.worker.turns.turns import WorkerTurns
from fleet.wire import dialects, presence
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
"""How long a device's session waits for its return: firmware reconnects after 10 s and its audio goes on meanwhile."""

_Conversational = ListenStartEvent | ListenStopEvent | DetectEvent | AbortEvent


class DeviceDispatcher:
    """Handles what devices send and how they come and go."""

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
        self.lists = discovery.lists
        """The tool lists that are being read."""

    async def receive(self, shard: Shard, kind: str, mac: str, payload: bytes) -> None:
        """Handle one message of a device, of its presence, or the broker's word when it began."""
        if kind == "boot":
            await outdate(self._resources.devices, shard, payload, self._vanish)
        elif kind == "presence":
            await self._appear(shard, mac, payload)
        else:
            await self._handle(shard, mac, *await self._understand(mac, payload))

    async def _understand(self, mac: str, payload: bytes) -> tuple[str, DeviceEvent]:
        """Return a frame's dialect and what it says; a frame that shows no dialect is read in its device's."""
        await self._parsing.take(parsing_cost(payload))
        name, event = dialects.receive(payload)
        if isinstance(event, MalformedEvent):
            own = dialects.find((await self._resources.devices.read(mac)).dialect)
            if own.name != name:
                return own.name, own.receive(payload)
        return name, event

    async def _handle(self, shard: Shard, mac: str, dialect: str, event: DeviceEvent) -> None:
        match event:
            case RegisterToolsEvent():
                await self._registrations.register(shard, mac, event, dialect)
            case BadRequestEvent():
                self._registrations.reject(shard, mac, event, dialect)
            case HelloEvent():
                await self._hello(shard, mac, dialect, event)
            case ListenStartEvent() | ListenStopEvent() | DetectEvent() | AbortEvent():
                await self._converse(shard, mac, dialect, event)
            case GoodbyeEvent():
                await self._close(shard, mac, event.session)
            case ResponseEvent():
                await self._answer(shard, mac, event)
            case NotificationEvent():
                await self._report(shard, mac, event)
            case IgnoredEvent():
                log.debug("message ignored", extra={"kind": event.kind})
            case MalformedEvent():
                metrics.malformed.add("device")
                log.warning("malformed message", extra={"reason": event.reason})
            case _:
                assert_never(event)

    async def _hello(self, shard: Shard, mac: str, dialect: str, hello: HelloEvent) -> None:
        self._returns.settle(mac)
        self._turns.cancel(mac)
        begun = monotonic()
        opened = await self._session_opener.welcome(shard, mac, hello, dialect)
        metrics.hello_latency.observe(monotonic() - begun)
        if opened and opened.old_session:
            self._replaced.note(mac, opened.old_session)
        if opened and hello.mcp and not opened.tools_known:
            self._discovery.start(shard, mac, dialect)

    async def _converse(self, shard: Shard, mac: str, dialect: str, event: _Conversational) -> None:
        session = await self._resources.sessions.read(mac)
        if session is not None and self._session_opener.lost(session):
            await self._abandon(shard, mac, session)
            return
        known = session and (event.session in ("", session.id) or self._replaced.holds(mac, event.session))
        if session is None or not known:
            await self._correct(shard, mac, dialect, event)
            return
        if isinstance(event, AbortEvent):
            self._turns.cancel(mac)
        shard.check()
        await self._resources.inboxes.to_edge(session.edge, _command_of(session, event))

    async def _correct(self, shard: Shard, mac: str, dialect: str, event: _Conversational) -> None:
        """Answer a message of a session that is gone: a goodbye with that id lets the device begin anew."""
        if isinstance(event, AbortEvent):
            # It speaks, and would go on for ever without this.
            shard.publish(mac, AnswerStopCommand(event.session), dialect)
        if not event.session:
            return
        if await self._session_opener.apologies.just_ended(mac, event.session):
            log.info("message of a session that has just ended", extra={"session": event.session})
            return
        shard.publish(mac, GoodbyeCommand(event.session), dialect)

    async def _report(self, shard: Shard, mac: str, notice: NotificationEvent) -> None:
        text = reports.write(notice.method, notice.params)
        log.info("device reports", extra={"pii": {"report": text}})
        await self._resources.reports.add(shard.owner, mac, text)

    async def _answer(self, shard: Shard, mac: str, answer: ResponseEvent) -> None:
        if self._discovery.pending.resolve(mac, answer):
            return
        if not await self._calls.answer(shard, mac, answer):
            log.info("answer to no pending call", extra={"id": answer.id[:32]})

    async def _appear(self, shard: Shard, mac: str, payload: bytes) -> None:
        news = presence.parse(payload)
        if news is None:
            metrics.malformed.add("presence")
            log.warning("malformed presence")
            return
        devices = self._resources.devices
        met = await devices.appear(mac, online=news.online, epoch=news.epoch, user=news.user, owner=shard.owner)
        if not met.applied:
            return
        log.info("device online" if news.online else "device offline")
        if not news.online:
            self._returns.settle(mac)
            if met.session and news.expired:
                await self._close(shard, mac, met.session, "absent")
            self._vanish(shard, mac, "" if news.expired else met.session)
            return
        self._calls.reconnect(mac)
        if dialects.capabilities(met.dialect).lists_tools:
            self._discovery.restart(shard, mac, met.dialect)
        await self._settle(shard, mac, met)

    def _vanish(self, shard: Shard, mac: str, session: str) -> None:
        self._calls.disconnect(mac)
        self._discovery.pending.disconnect(mac)
        if session:
            shard.spawn(f"absence {mac}", self._close_if_absent(shard, mac, session))

    async def _settle(self, shard: Shard, mac: str, met: PresenceChange) -> None:
        """End what a device that came back may still be doing.

        It speaks until `tts stop`, which it may have missed: its edge knows. A session that is over ends with a
        goodbye, whatever the device does in it. A device without any session is sent nothing: it may be a registrar.
        """
        session = await self._resources.sessions.read(mac) if met.session else None
        if session is not None and not self._session_opener.lost(session):
            returned = DeviceReturnedCommand(device=mac, session=session.id)
            await self._resources.inboxes.to_edge(session.edge, returned)
        elif session is not None:
            await self._abandon(shard, mac, session)
        elif last := met.session or met.gone:
            # It may have missed the goodbye, and would be heard by nobody for ever.
            self._returns.expect(shard, mac, last, met.dialect, apology=met.apology)

    async def _abandon(self, shard: Shard, mac: str, session: SessionRecord) -> None:
        if await self._session_opener.abandon(shard, mac, session.id, session.dialect):
            self._turns.cancel(mac)

    async def _close_if_absent(self, shard: Shard, mac: str, session: str) -> None:
        await asyncio.sleep(ABSENCE_SECONDS)
        if not (await self._resources.devices.read(mac)).online:
            await self._close(shard, mac, session, "absent")

    async def _close(self, shard: Shard, mac: str, session: str, reason: Leaving = "device") -> None:
        if await self._session_opener.close(shard, mac, session, reason):
            self._turns.cancel(mac)


def _command_of(session: SessionRecord, event: _Conversational) -> EdgeCommand:
    match event:
        case ListenStartEvent():
            return StartListeningCommand(device=session.device, session=session.id, mode=event.mode)
        case ListenStopEvent():
            return StopListeningCommand(device=session.device, session=session.id)
        case DetectEvent():
            # One more than can be answered, so that the edge knows.
            text = event.text[: LONGEST_QUESTION + 1]
            return DetectedTextCommand(device=session.device, session=session.id, text=text)
        case AbortEvent():
            return AbortAnswerCommand(device=session.device, session=session.id, reason=event.reason)
        case _:
            assert_never(event)
