"""The audio channel: hello and its answer, the UDP socket, counters and keys (contract 3 and 4)."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from fleet.workbench.sim.connection.datagram import Cryptor
from fleet.workbench.sim.connection.downlink import Downlink
from fleet.workbench.sim.connection.mqtt_client import MqttClient
from fleet.workbench.sim.connection.udp_path import Spawn, UdpPath
from fleet.workbench.sim.messages import outbound, server_hello
from fleet.workbench.sim.messages.message import JsonObject
from fleet.workbench.sim.messages.server_hello import ServerHello
from fleet.workbench.sim.network.conditions import DatagramCallbacks, NetworkConditions
from fleet.workbench.sim.profiles.profile import Profile
from fleet.workbench.sim.records.change_signal import ChangeSignal
from fleet.workbench.sim.records.journal import Journal
from fleet.workbench.sim.records.loop_lag import LoopLag

_EXCUSED_BY_LATE_HELLO = ("hello-missing", "hello-late", "hello-slow")
_LATER_STILL = 30.0
"""Seconds by which a process that is held up may take the answer later than that."""


@dataclass(frozen=True, slots=True)
class ChannelEvents:
    """Callbacks: a payload with its timestamp, a packet that the network lost, an accepted hello, a failed send."""

    audio: Callable[[bytes, int], None]
    missed: Callable[[], None]
    welcomed: Callable[[ServerHello], None]
    failed: Callable[[], None]


class AudioChannel:
    """One channel at a time; a hello that is answered replaces its keys and counters in whatever state.

    Args:
        profile: Which build this is.
        journal: Takes steps, counters and breaches.
        loop_lag: Says whether this process was held up, so that the socket's few slots cannot be judged.
        network: What lies between here and the server.
        events: Callbacks.
        spawn: Starts a task that ends with the socket.
    """

    def __init__(
        self,
        profile: Profile,
        journal: Journal,
        loop_lag: LoopLag,
        network: NetworkConditions,
        events: ChannelEvents,
        spawn: Spawn,
    ) -> None:
        self._profile = profile
        self._journal = journal
        self._loop_lag = loop_lag
        self._network = network
        self._events = events
        self._spawn = spawn
        self._waits = _Waiting()
        self._path: UdpPath | None = None
        self._downlink = Downlink(profile, journal, loop_lag, self._accept)
        self.hello: ServerHello | None = None
        self.mqtt: MqttClient | None = None

    @property
    def session(self) -> str:
        """The last known session id, also after the channel was closed."""
        return self.hello.session if self.hello else ""

    @property
    def live(self) -> str:
        """The open channel's session id, else empty."""
        return self.session if self._path else ""

    @property
    def opened(self) -> bool:
        """Whether firmware takes the channel for open: a socket, no error, and something heard within 120 s."""
        return self._path is not None and self._path.is_open and self.quiet <= self._profile.timing.stale

    @property
    def quiet(self) -> float:
        """Seconds since anything came from the server."""
        return self._journal.clock() - self._waits.heard

    def touch(self) -> None:
        """Something came from the server."""
        self._waits.heard = self._journal.clock()

    async def send(self, text: str) -> bool:
        """Publish a message; a failure ends the conversation, but firmware does not notice a missing topic."""
        if self.mqtt is None or not self.mqtt.has_topic:
            return False
        if await self.mqtt.publish(text):
            return True
        self._events.failed()
        return False

    async def open(self) -> bool:
        """Say hello and open the socket; return False when no valid answer came in time."""
        self._shut()
        timing = self._profile.timing
        if self.mqtt is None or not await self.mqtt.ready(timing.mqtt_connect):
            self._journal.note("alert", status="error", message="server not connected")
            return False
        hello = await self._ask(timing.hello)
        if hello is None:
            self._journal.violate("hello-missing", f"no valid answer within {timing.hello:g} s")
            return False
        ends = DatagramCallbacks(self._downlink.arrive, self._downlink.receive, self._events.missed)
        connected = self._profile.checks_downlink
        self._path = await UdpPath.open(hello, self._network, ends, self._journal, connected=connected)
        if self._path is None:
            return False
        self.touch()
        self._path.start(self._spawn)
        self._journal.note("udp open", server=hello.server, port=hello.port, local_port=self._path.local_port)
        return True

    async def close(self, *, say_goodbye: bool) -> None:
        """Close the socket; the session's id is kept."""
        if say_goodbye and self._path and self.mqtt:
            await self.mqtt.publish(outbound.goodbye(self.session))
            self._journal.note("goodbye", by="device", session=self.session)
        self._shut()
        if self.mqtt:
            self.mqtt.conversation_over()

    def send_audio(self, payload: bytes, timestamp: int = 0) -> bool:
        """Send one packet; return False when there is no open channel."""
        cryptor = self._downlink.cryptor
        if self._path is None or cryptor is None:
            return False
        datagram, meets = cryptor.seal(payload, timestamp)
        if meets:
            self._journal.violate("keystream", f"uplink packet {cryptor.sent} meets a downlink packet")
        self._journal.count("uplink_sent")
        self._journal.count("uplink_silent" if len(payload) == 1 else "uplink_full")
        return self._path.send(datagram)

    def receive_hello(self, message: JsonObject) -> None:
        """Take the server's hello, asked for or not."""
        self._journal.judge(server_hello.check(message))
        hello = server_hello.read(message)
        if hello is None:
            return
        if self._waits.gave_up:
            self._journal.violate("hello-late", "came after the device gave up")
        self._journal.judge(self._waits.check_fresh(hello))
        if self._profile.aec and hello.frame_ms != 60:
            self._journal.violate("echo-reference", f"packets of {hello.frame_ms} ms")
        self._waits.gave_up = False
        self.hello = hello
        self._downlink.use(Cryptor(hello, self._profile))
        self._events.welcomed(hello)
        self._journal.note("welcome", session=hello.session, sample_rate=hello.sample_rate, frame_ms=hello.frame_ms)
        self._waits.pending = False
        self._waits.answers += 1
        self._waits.answered.notify()

    async def _ask(self, seconds: float) -> ServerHello | None:
        waits, faults = self._waits, self._network.faults
        waits.pending, waits.gave_up = True, False
        asked = self._journal.clock()
        if faults.late_hello:
            self._journal.excuse(_EXCUSED_BY_LATE_HELLO, faults.late_hello + seconds + _LATER_STILL)
        self._journal.note("hello")
        if not await self.send(outbound.hello(self._profile)):
            return None
        if faults.second_hello:
            self._spawn(self._repeat(faults.second_hello, waits.answers + 2), "sim-second-hello")
        if not await waits.answered.within(seconds, lambda: not waits.pending):
            waits.pending, waits.gave_up = False, True
            return None
        took = self._journal.clock() - asked - self._loop_lag.stalled_since(asked)
        if took > self._profile.limits.hello + (self._profile.rtt[1] if self._profile.rtt else 0.0):
            self._journal.violate("hello-slow", f"answered after {took:.2f} s")
        return self.hello

    async def _repeat(self, seconds: float, answers: int) -> None:
        """Say hello once more, and after so many answers in all what follows it.

        A server knows of no listening before its last answer.
        """
        await asyncio.sleep(seconds)
        self._journal.note("hello", again=True)
        await self.send(outbound.hello(self._profile))
        answered = await self._waits.answered.within(self._profile.timing.hello, lambda: self._waits.answers >= answers)
        if answered and self.live and self._journal.find("listening"):
            await self.send(outbound.listen_start(self.session, self._profile.mode))

    def _accept(self, payload: bytes, timestamp: int) -> None:
        self.touch()
        self._events.audio(payload, timestamp)

    def _shut(self) -> None:
        if self._path:
            self._path.close()
            self._path = None


@dataclass(slots=True)
class _Waiting:
    """What the channel remembers between hellos."""

    answered: ChangeSignal = field(default_factory=ChangeSignal)
    pending: bool = False
    gave_up: bool = False
    answers: int = 0
    heard: float = float("-inf")
    keys: set[bytes] = field(default_factory=set)
    sessions: set[str] = field(default_factory=set)

    def check_fresh(self, hello: ServerHello) -> list[tuple[str, str]]:
        """Return what this hello has in common with one before."""
        found = []
        if hello.key in self.keys:
            found.append(("hello-key-reuse", f"session {hello.session}"))
        if hello.session in self.sessions:
            found.append(("hello-session-reuse", f"session {hello.session}"))
        self.keys.add(hello.key)
        self.sessions.add(hello.session)
        return found
