"""The edge role."""

import asyncio
import logging
import math
from collections import Counter

from fleet.adapters.net.mqtt.publisher import Publisher
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.adapters.speech.audio_input import AudioInput
from fleet.adapters.speech.voice import Voice
from fleet.core.ports import Asr
from fleet.ground.background import BackgroundTasks
from fleet.ground.tasks import isolate, keep_running
from fleet.roles.edge.dispatcher import EdgeDispatcher
from fleet.roles.edge.outbox import NotificationQueue
from fleet.roles.edge.registry import SessionRegistry
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.session import EdgeSession
from fleet.roles.edge.settings import EdgeSettings
from fleet.roles.edge.transport.packet_router import PacketRouter
from fleet.roles.edge.transport.socket import AudioSocket
from fleet.roles.edge.transport.stall_detector import StallDetector

log = logging.getLogger(__name__)

CHECK_SECONDS = 1.0
"""Time between looks at limits that are counted in seconds."""
GOODBYE_SECONDS = 2.0
"""How long the shards have to say goodbye to the sessions of an edge that ends."""
NOTICE_SECONDS = 1.5
"""How long a worker may give sessions to an edge that has said that it drains: workers look once a second."""
ASLEEP_SECONDS = 3.0
"""Between two looks: an edge that stood still for longer (stopped, or its machine) has lost what was said meanwhile."""
AWAKE_SECONDS = 2.0
"""From then until it has read the commands that waited, and heard the packets that were not lost."""
_CHECKED_AT_ONCE = 250


class Edge:
    """Owns one UDP socket and the audio of its sessions; made and used inside one event loop.

    Args:
        settings: Of the process.
        edge_id: Names this edge in logs.
        audio_input: Decodes packets and detects speech.
        asr: Recognises utterances.
        voice: Speaks sentences.
        publisher: Sends commands to devices; may drop them while offline.
        inboxes: This edge's, and those of the shards.
    """

    def __init__(  # noqa: PLR0913 - everything outside is handed in, so that tests and `fleet up` can
        self,
        *,
        settings: EdgeSettings,
        edge_id: str,
        audio_input: AudioInput,
        asr: Asr,
        voice: Voice,
        publisher: Publisher,
        inboxes: Inboxes,
    ) -> None:
        self.id = edge_id
        self.counters: Counter[str] = Counter()
        """Packets `received`, and all that was dropped, by reason."""
        self.draining = False
        """Whether it is to be given no more sessions."""
        self._registry = SessionRegistry()
        self._router = PacketRouter(self._registry, self.counters)
        stalls = StallDetector(asyncio.get_running_loop().time(), self._lapse)
        self._services = EdgeServices(
            settings=settings,
            audio_input=audio_input,
            asr=asr,
            voice=voice,
            publisher=publisher,
            inboxes=inboxes,
            outbox=NotificationQueue(inboxes, self.counters),
            socket=AudioSocket(self._router, self.counters, stalls),
            stalls=stalls,
            tasks=BackgroundTasks(),
            counters=self.counters,
        )
        self.traces = self._services.traces
        """What is to be written down of devices; its `run` writes."""
        self._dispatcher = EdgeDispatcher(edge_id, self._registry, self._services, self._router)

    @property
    def load(self) -> int:
        """Sessions."""
        return len(self._registry)

    @property
    def bound(self) -> bool:
        """Whether it has its UDP port."""
        return self._services.socket.bound

    @property
    def port(self) -> int:
        """The UDP port, once `bind` was called."""
        return self._services.socket.port

    async def drain(self, seconds: float) -> None:
        """End each session as soon as nobody waits for an answer in it or hears one, at the latest in `seconds`.

        The sessions' shards say goodbye; `run` says it to the other devices when it is cancelled, and to all of them
        where there is no time. Sessions that come meanwhile, from a worker that has not heard yet, end likewise.
        """
        if not seconds:
            return
        clock = asyncio.get_running_loop().time
        heard, deadline = clock() + min(seconds, NOTICE_SECONDS), clock() + seconds
        dismissed: set[str] = set()
        while self._services.tasks.open and clock() < (deadline + GOODBYE_SECONDS if len(self._registry) else heard):
            for session in self._registry:
                if session.opened.session not in dismissed and (not session.busy or clock() >= deadline):
                    dismissed.add(session.opened.session)
                    session.dismiss()
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
            self._leave()
            self._services.socket.close()

    def _leave(self) -> None:
        """Say goodbye to the devices, so that none waits for an answer that cannot come."""
        for session in self._registry:
            session.leave()

    def _lapse(self) -> None:
        """Forget all sessions unheard: what they would say now their devices may hear beside another edge."""
        for session in list(self._registry):
            session.resign()
            self._registry.remove(session.opened.device)

    async def _check(self) -> None:
        clock = asyncio.get_running_loop().time
        looked, wakes = clock(), math.inf
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            now = clock()
            if now - looked > ASLEEP_SECONDS:
                wakes = now + AWAKE_SECONDS
            looked, woken = now, now >= wakes
            wakes = math.inf if woken else wakes
            self._router.expire(now)
            for number, session in enumerate(self._registry, start=1):
                await isolate("edge check", self._check_one(session, now, woken))
                if not number % _CHECKED_AT_ONCE:
                    # Packets must not wait until all sessions were looked at.
                    await asyncio.sleep(0)

    async def _check_one(self, session: EdgeSession, now: float, woken: bool) -> None:
        if self._registry.by_ssrc.get(session.opened.ssrc) is session:
            session.check(now)
            if woken:
                session.wake()
