"""Dispatch the commands in an edge's inbox to its sessions."""

import asyncio
import logging
import re

from fleet.ground.log import fields
from fleet.ground.tasks import isolate
from fleet.roles.edge.clips import ClipMaker
from fleet.roles.edge.packet_router import PacketRouter
from fleet.roles.edge.registry import SessionRegistry
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.session import EdgeSession
from fleet.wire import dialects
from fleet.wire.edge_messages import (
    AgentsChangedCommand,
    CloseSessionCommand,
    EdgeCommand,
    MakeClipCommand,
    OpenSessionCommand,
    SessionSilentEvent,
)
from fleet.wire.toc import FRAME_MS, SAMPLE_RATES

log = logging.getLogger(__name__)

_AT_ONCE = 100
"""Sessions whose agents are read at once."""
_KEY = re.compile("[0-9a-fA-F]{32}")
_FRAME_MS, _SAMPLE_RATES = frozenset(FRAME_MS), frozenset(SAMPLE_RATES)


class EdgeDispatcher:
    """Reads the edge's inbox, and passes each command to its session.

    Args:
        edge_id: The edge.
        registry: The edge's sessions.
        services: Of the edge.
        router: Holds the packets that came before their session.
    """

    def __init__(self, edge_id: str, registry: SessionRegistry, services: EdgeServices, router: PacketRouter) -> None:
        self._edge_id = edge_id
        self._registry = registry
        self._services = services
        self._router = router
        self._clips = ClipMaker(services)
        self._agents_due = self._agents_running = False

    async def run(self) -> None:
        """Read until cancelled.

        Raises:
            Unavailable: Redis does not answer; call it again.
        """
        clock, commands = asyncio.get_running_loop().time, self._services.inboxes.read_edge(self._edge_id)
        async for command in commands:
            now = clock()
            self._services.stalls.beat(now)
            session = self._registry.find(command.device, command.session)
            if isinstance(command, MakeClipCommand):
                self._clips.take(command)
            elif isinstance(command, AgentsChangedCommand):
                self._note_agents(command.device)
            elif session is None or isinstance(command, OpenSessionCommand | CloseSessionCommand):
                await isolate("edge inbox", self._open_or_close(command, session, now))
            else:
                await isolate("edge inbox", session.take(command, now))

    def _note_agents(self, mac: str) -> None:
        """Read the agent of a session again, or of all; further changes while all are read are read together."""
        macs = [session.opened.device for session in self._registry if mac in ("", session.opened.device)]
        if mac and macs:
            self._services.tasks.start("agent of a session", self._read_agents(macs))
        elif not mac:
            self._agents_due = True
            if not self._agents_running:
                self._services.tasks.start("agents of all sessions", self._read_all_agents())

    async def _read_all_agents(self) -> None:
        self._agents_running = True
        try:
            while self._agents_due:
                self._agents_due = False
                await self._read_agents([session.opened.device for session in self._registry])
        finally:
            self._agents_running = False

    async def _read_agents(self, macs: list[str]) -> None:
        for at in range(0, len(macs), _AT_ONCE):
            batch = macs[at : at + _AT_ONCE]
            digests = dict(zip(batch, await self._services.agents.of_devices(batch), strict=True))
            for session in self._registry:
                if session.opened.device in digests:
                    session.adopt(digests[session.opened.device])

    async def _open_or_close(self, command: EdgeCommand, session: EdgeSession | None, now: float) -> None:
        """Open or close a session; count any other command as one for an ended session."""
        if isinstance(command, OpenSessionCommand):
            if session is None:
                with fields(session=command.session, device=command.device):
                    self._open(command, now)
        elif session is None:
            self._services.counters["command_without_session"] += 1
        else:
            self._registry.remove(command.device)

    def _open(self, command: OpenSessionCommand, now: float) -> None:
        # The device's earlier session is over, also if the new one is refused: nobody else ends it.
        self._registry.remove(command.device)
        reason = self._refusal(command)
        if reason:
            log.warning("session refused", extra={"reason": reason})
            unused = SessionSilentEvent(device=command.device, session=command.session, reason="unused")
            self._services.outbox.put(command.shard, unused)
            return
        session = EdgeSession(command, self._services, now)
        self._registry.add(session)
        self._router.admit(session, now)

    def _refusal(self, command: OpenSessionCommand) -> str | None:
        if not dialects.capabilities(command.dialect).audio:
            return "unknown dialect"
        if not _KEY.fullmatch(command.key):
            return "bad key"
        if not _FRAME_MS.issuperset((command.uplink_frame_ms, command.downlink_frame_ms)):
            return "unknown frame length"
        if not _SAMPLE_RATES.issuperset((command.uplink_rate, command.downlink_rate)):
            return "unknown sample rate"
        if command.ssrc in self._registry.by_ssrc:
            # By chance. One of the two would hear the other's device, and that device would be heard no more.
            return "ssrc in use"
        full = len(self._registry) >= self._services.settings.edge_sessions
        return "too many sessions" if full else None
