"""The edge role."""

import asyncio
import logging
import math
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine

from fleet.adapters.speech.audio_input import AudioInput
from fleet.adapters.speech.voice import Voice
from fleet.core.ports import Asr
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
from fleet.wire.edge_messages import EdgeCommand, EdgeEvent

log = logging.getLogger(__name__)

CHECK_SECONDS = 1.0
"""Time between looks at limits that are counted in seconds."""
FAREWELL_SECONDS = 2.0
"""How long the shards have to say goodbye to the sessions of an edge that ends."""
NEWS_SECONDS = 1.5
"""How long a worker may give sessions to an edge that has said that it drains: workers look once a second."""
ASLEEP_SECONDS = 3.0
"""Between two looks: an edge that stood still for longer (stopped, or its machine) has lost what was said meanwhile."""
AWAKE_SECONDS = 2.0
"""From then until it has read the mail that waited, and heard the packets that were not lost."""
_CHECKED_AT_ONCE = 250


class Edge:
    """Owns one UDP socket and the audio of its sessions; made and used inside one event loop.

    Args:
        settings: Of the process.
        edge_id: Names this edge in logs.
        ears: Decode and detect speech.
        asr: Recognises utterances.
        voice: Speaks sentences.
        publish: Sends a payload to an MQTT topic at QoS 0; may drop it while offline.
        post: Delivers mail to a shard; bounded in time, raises `FleetError` when it could not.
        mail: Yields this edge's mail; called again after it failed.
    """

    def __init__(  # noqa: PLR0913 - everything outside is handed in, so that tests and `fleet up` can
        self,
        *,
        settings: EdgeSettings,
        edge_id: str,
        ears: AudioInput,
        asr: Asr,
        voice: Voice,
        publish: Callable[[str, bytes], object],
        post: Callable[[int, EdgeEvent], Awaitable[None]],
        mail: Callable[[], AsyncIterator[EdgeCommand]],
    ) -> None:
        self.id = edge_id
        self.counters: Counter[str] = Counter()
        """Packets `received`, and all that was dropped, by reason."""
        self.draining = False
        """Whether it is to be given no more sessions."""
        self._mail = mail
        self._tasks: asyncio.TaskGroup | None = None
        self._registry = SessionRegistry()
        self._entrance = PacketRouter(self._registry, self.counters)
        self._outbox = NotificationQueue(post, self.counters)
        standstill = StallDetector(asyncio.get_running_loop().time(), self._lapse)
        self._services = EdgeServices(
            settings=settings,
            ears=ears,
            asr=asr,
            voice=voice,
            publish=publish,
            post=post,
            tell=self._outbox.put,
            socket=AudioSocket(self._entrance.receive, self.counters, standstill.beat),
            standstill=standstill,
            spawn=self._spawn,
            counters=self.counters,
        )
        self.traces = self._services.traces
        """What is to be written down of devices; its `run` writes."""
        self._desk = EdgeDispatcher(self._registry, self._services, self._entrance.admit)

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

        The sessions' shards say goodbye; whom they do not reach in time is told by `run` when it is cancelled. Without
        any time it is left to that. Sessions that come meanwhile, from a worker that has not heard yet, end likewise.
        """
        if not seconds:
            return
        clock = asyncio.get_running_loop().time
        heard, deadline = clock() + min(seconds, NEWS_SECONDS), clock() + seconds
        dismissed: set[str] = set()
        while self._tasks is not None and clock() < (deadline + FAREWELL_SECONDS if len(self._registry) else heard):
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
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                tasks.create_task(self._services.ears.run(), name="ears")
                tasks.create_task(self._outbox.run(), name="edge outbox")
                tasks.create_task(keep_running("edge mail", self._read), name="edge mail")
                tasks.create_task(self._check(), name="edge check")
                tasks.create_task(self._services.standstill.run(), name="edge beat")
        finally:
            self._leave()
            self._tasks = None
            self._services.socket.close()

    def _leave(self) -> None:
        """Tell the devices that nobody listens any more, so that none waits for an answer that cannot come."""
        for session in self._registry:
            session.leave()

    async def _read(self) -> None:
        async for mail in self._mail():
            await isolate("edge mail", self._take(mail))

    async def _take(self, mail: EdgeCommand) -> None:
        now = asyncio.get_running_loop().time()
        self._services.standstill.beat(now)
        self._desk.take(mail, now)

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
            self._entrance.expire(now)
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

    def _spawn(self, what: str, work: Coroutine[None, None, None]) -> "asyncio.Task[object]":
        if self._tasks is None:
            work.close()
            raise RuntimeError("the edge is not running")
        task = self._tasks.create_task(isolate(what, work), name=what)
        # A task that is cancelled before it has begun never awaits its work.
        task.add_done_callback(lambda _: work.close())
        return task
