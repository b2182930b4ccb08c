"""The edge role."""

import asyncio
import logging
import math
from collections import Counter

from fleet.adapters.net.mqtt.publisher import Publisher
from fleet.adapters.redis.agents.known_agents import KnownAgents
from fleet.adapters.redis.announcements.clips import Clips
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.adapters.speech.audio_input import AudioInput
from fleet.adapters.speech.voice import Voice
from fleet.core.ports import Asr, TurnDetector
from fleet.ground.background import BackgroundTasks
from fleet.ground.tasks import isolate, keep_running
from fleet.roles.edge.agents import AgentSpeech
from fleet.roles.edge.dispatcher import EdgeDispatcher
from fleet.roles.edge.outbox import NotificationQueue
from fleet.roles.edge.packet_router import PacketRouter
from fleet.roles.edge.registry import SessionRegistry
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.session import EdgeSession
from fleet.roles.edge.settings import EdgeSettings
from fleet.roles.edge.transport.socket import AudioSocket
from fleet.roles.edge.transport.stall_detector import StallDetector

log = logging.getLogger(__name__)

CHECK_SECONDS = 1.0
"""Time between two checks of limits that are counted in seconds."""
GOODBYE_SECONDS = 2.0
"""Time for the shards to say goodbye to the sessions of an edge that ends."""
NOTICE_SECONDS = 1.5
"""Time in which workers may still open sessions on an edge that drains: they read the announcements once a second."""
HEARING_SECONDS = 6.0
"""Longest time in which an edge that ends keeps a session in which nobody speaks, because it stood still: it reads what
came meanwhile at once, but one that stands still again and again would never end that session."""
STOPPED_SECONDS = 3.0
"""Time between two checks that means that the process or its machine was stopped: speech meanwhile was lost."""
RECOVERY_SECONDS = 2.0
"""Time after such a stop in which the edge reads waiting commands and packets."""
_CHECKED_AT_ONCE = 250


class Edge:
    """Owns one UDP socket and the audio of its sessions; made and used inside one event loop.

    Args:
        settings: Of the process.
        edge_id: Names this edge in logs and in Redis.
        audio_input: Decodes packets and detects speech.
        asr: Recognises utterances.
        turn_detector: Judges whether a speaker has finished.
        voice: Speaks sentences.
        publisher: Sends commands to devices; may drop them while offline.
        inboxes: The inbox of this edge, and those of the shards.
        documents: Of agents; None for an edge on which only the settings count.
        speech: The speech engines of agents.
        clips: Of announcements; None for an edge that makes none.
    """

    def __init__(  # noqa: PLR0913 - tests and `fleet up` pass their own parts
        self,
        *,
        settings: EdgeSettings,
        edge_id: str,
        audio_input: AudioInput,
        asr: Asr,
        turn_detector: TurnDetector,
        voice: Voice,
        publisher: Publisher,
        inboxes: Inboxes,
        documents: KnownAgents | None = None,
        speech: AgentSpeech | None = None,
        clips: Clips | None = None,
    ) -> None:
        self.id = edge_id
        self.counters: Counter[str] = Counter()
        """Packets `received`, and drops by reason."""
        self.draining = False
        """Whether the announcement asks workers for no more sessions."""
        self._registry = SessionRegistry()
        self._router = PacketRouter(self._registry, self.counters)
        stalls = StallDetector(asyncio.get_running_loop().time(), self._discard_sessions)
        self._services = EdgeServices(
            settings=settings,
            audio_input=audio_input,
            asr=asr,
            turn_detector=turn_detector,
            voice=voice,
            publisher=publisher,
            inboxes=inboxes,
            outbox=NotificationQueue(inboxes, self.counters, settings.edge_sessions),
            socket=AudioSocket(self._router, self.counters, stalls, native=settings.udp_native),
            stalls=stalls,
            tasks=BackgroundTasks(),
            counters=self.counters,
            documents=documents,
            speech=speech,
            clips=clips,
        )
        self.traces = self._services.traces
        """Notes about devices; its `run` writes them to Redis."""
        self._dispatcher = EdgeDispatcher(edge_id, self._registry, self._services, self._router)

    @property
    def load(self) -> int:
        """Number of sessions."""
        return len(self._registry)

    @property
    def bound(self) -> bool:
        """Whether the UDP port is bound."""
        return self._services.socket.bound

    @property
    def port(self) -> int:
        """The UDP port, once `bind` was called."""
        return self._services.socket.port

    async def drain(self, seconds: float) -> None:
        """End each session when no answer is awaited or spoken in it, at the latest after `seconds`.

        The sessions' shards say goodbye. When `run` is cancelled, it says goodbye to the devices that are left, and to
        all devices if `seconds` is 0. A worker that has not read the announcement yet may open more sessions; they end
        in the same way. An edge that has just stood still first hears what was said meanwhile, for `HEARING_SECONDS`.
        """
        if not seconds:
            return
        clock = asyncio.get_running_loop().time
        noticed, deadline = clock() + min(seconds, NOTICE_SECONDS), clock() + seconds
        ended: set[str] = set()
        quiet: dict[str, float] = {}
        """Since when nobody speaks in a session."""
        stalls = self._services.stalls
        while self._services.tasks.open and clock() < (deadline + GOODBYE_SECONDS if len(self._registry) else noticed):
            stalls.beat(now := clock())
            for session in self._registry:
                name = session.opened.session
                since = quiet[name] = now if session.busy else quiet.get(name, now)
                heard = not stalls.waited(now) or now - since >= HEARING_SECONDS
                if name not in ended and ((heard and not session.busy) or now >= deadline):
                    ended.add(name)
                    session.shut_down()
            await asyncio.sleep(0.05)

    def bind(self) -> None:
        """Take the UDP port.

        Raises:
            OSError: It is taken.
        """
        settings = self._services.settings
        self._services.socket.bind(settings.udp_host, settings.udp_port)

    async def run(self) -> None:
        """Serve until cancelled.

        Raises:
            OSError: `bind` was not called before, and the port is taken.
        """
        if not self._services.socket.bound:
            self.bind()
        try:
            async with self._services.tasks.opened() as group:
                group.create_task(self._services.audio_input.run(), name="audio input")
                group.create_task(self._services.outbox.run(), name="edge outbox")
                group.create_task(keep_running("edge inbox", self._dispatcher.run), name="edge inbox")
                group.create_task(self._check(), name="edge check")
                group.create_task(self._services.stalls.run(), name="edge beat")
        finally:
            self._say_goodbye()
            self._services.socket.close()

    def _say_goodbye(self) -> None:
        """Say goodbye to all devices, so that they stop waiting for answers."""
        for session in self._registry:
            session.say_goodbye()

    def _discard_sessions(self) -> None:
        """Close all sessions without sending audio: another edge may serve their devices already."""
        for session in list(self._registry):
            session.request_end()
            self._registry.remove(session.opened.device)

    async def _check(self) -> None:
        clock = asyncio.get_running_loop().time
        checked_at, recover_at = clock(), math.inf
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            now = clock()
            if now - checked_at > STOPPED_SECONDS:
                recover_at = now + RECOVERY_SECONDS
            checked_at, recover = now, now >= recover_at
            recover_at = math.inf if recover else recover_at
            self._router.expire(now)
            for number, session in enumerate(self._registry, start=1):
                await isolate("edge check", self._check_one(session, now, recover))
                if not number % _CHECKED_AT_ONCE:
                    # Let packets through before all sessions are checked.
                    await asyncio.sleep(0)

    async def _check_one(self, session: EdgeSession, now: float, recover: bool) -> None:
        if self._registry.by_ssrc.get(session.opened.ssrc) is session:
            session.check(now)
            if recover:
                session.recover()
