"""The audio channel: hello and its answer, the UDP socket, counters and keys (contract 3 and 4)."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from fleet.sim import greeting, outbound
from fleet.sim.datagram import Cryptor, Mailbox
from fleet.sim.greeting import ServerHello
from fleet.sim.journal import Journal
from fleet.sim.message import JsonObject
from fleet.sim.mqtt_line import MqttLine
from fleet.sim.profile import Profile
from fleet.sim.pulse import Pulse
from fleet.sim.udp_line import UdpLine
from fleet.sim.watch import Signal

_RULE_OF_REFUSAL = {
    "short": "datagram-form",
    "type": "datagram-form",
    "length": "datagram-form",
    "sequence": "sequence",
}
_SMALLEST, _LARGEST = 24, 1200
_MAILBOX_SPAN = 0.1


@dataclass(frozen=True, slots=True)
class ChannelEvents:
    """Whom the channel tells: of a payload, of the hello that now counts, and that sending failed."""

    audio: Callable[[bytes], None]
    welcomed: Callable[[ServerHello], None]
    failed: Callable[[], None]


class Channel:
    """One channel at a time; a hello that is answered replaces its keys and counters in whatever state.

    Args:
        profile: Which build this is.
        journal: Takes steps, counters and breaches.
        pulse: Says whether this process was held up, so that the socket's few slots cannot be judged.
        events: Whom to tell.
        spawn: Starts a task that ends with the socket.
    """

    def __init__(
        self,
        profile: Profile,
        journal: Journal,
        pulse: Pulse,
        events: ChannelEvents,
        spawn: Callable[[Coroutine[None, None, None], str], None],
    ) -> None:
        self._profile = profile
        self._journal = journal
        self._pulse = pulse
        self._events = events
        self._spawn = spawn
        self._answered = Signal()
        self._waits = _Waiting()
        self._line: UdpLine | None = None
        self._cryptor: Cryptor | None = None
        self._mailbox = Mailbox(profile.mailbox)
        self.hello: ServerHello | None = None
        self.mqtt: MqttLine | None = None

    @property
    def session(self) -> str:
        """The last known session id, also after the channel was closed."""
        return self.hello.session if self.hello else ""

    @property
    def live(self) -> str:
        """The open channel's session id, else empty."""
        return self.session if self._line else ""

    @property
    def opened(self) -> bool:
        """Whether firmware takes the channel for open: a socket, no error, and something heard within 120 s."""
        stale = self._journal.clock() - self._waits.heard > self._profile.timing.stale
        return self._line is not None and self._line.open and not stale

    def touch(self) -> None:
        """Something came from the server."""
        self._waits.heard = self._journal.clock()

    async def send(self, text: str) -> bool:
        """Publish a message; a failure ends the conversation."""
        if self.mqtt and await self.mqtt.publish(text):
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
        self._line = await UdpLine.connect(hello.server, hello.port, self._journal)
        if self._line is None:
            return False
        self.touch()
        self._spawn(self._line.read(self._receive), "sim-udp")
        self._journal.note("udp open", server=hello.server, port=hello.port, local_port=self._line.local_port)
        return True

    async def close(self, *, say_goodbye: bool) -> None:
        """Close the socket; the session's id is kept."""
        if say_goodbye and self._line and self.mqtt:
            await self.mqtt.publish(outbound.goodbye(self.session))
            self._journal.note("goodbye", by="device", session=self.session)
        self._shut()

    async def send_audio(self, payload: bytes, timestamp: int = 0) -> bool:
        """Send one packet; return False when there is no open channel."""
        if self._line is None or self._cryptor is None:
            return False
        datagram, meets = self._cryptor.seal(payload, timestamp)
        if meets:
            self._journal.violate("keystream", f"uplink packet {self._cryptor.sent} meets a downlink packet")
        self._journal.count("uplink_sent")
        self._journal.count("uplink_silent" if len(payload) == 1 else "uplink_full")
        return await self._line.send(datagram)

    def receive_hello(self, message: JsonObject) -> None:
        """Take the server's hello, asked for or not."""
        self._journal.judge(greeting.check(message))
        hello = greeting.read(message)
        if hello is None:
            return
        if self._waits.gave_up:
            self._journal.violate("hello-late", "came after the device gave up")
        self._judge_fresh(hello)
        self._waits.gave_up = False
        self.hello = hello
        self._cryptor = Cryptor(hello, self._profile)
        self._events.welcomed(hello)
        self._journal.note("welcome", session=hello.session, sample_rate=hello.sample_rate, frame_ms=hello.frame_ms)
        self._waits.pending = False
        self._answered.notify()

    async def _ask(self, seconds: float) -> ServerHello | None:
        self._waits.pending, self._waits.gave_up = True, False
        asked = self._journal.clock()
        self._journal.note("hello")
        if not await self.send(outbound.hello(self._profile)):
            return None
        if not await self._answered.within(seconds, lambda: not self._waits.pending):
            self._waits.pending, self._waits.gave_up = False, True
            return None
        took = self._journal.clock() - asked
        if took > self._profile.limits.hello:
            self._journal.violate("hello-slow", f"answered after {took:.2f} s")
        return self.hello

    def _judge_fresh(self, hello: ServerHello) -> None:
        if hello.key in self._waits.keys:
            self._journal.violate("hello-key-reuse", f"session {hello.session}")
        if hello.session in self._waits.sessions:
            self._journal.violate("hello-session-reuse", f"session {hello.session}")
        self._waits.keys.add(hello.key)
        self._waits.sessions.add(hello.session)

    def _shut(self) -> None:
        if self._line:
            self._line.close()
            self._line = None

    def _receive(self, datagram: bytes) -> None:
        now = self._journal.clock()
        self._journal.count("downlink_received")
        if not self._mailbox.admit(now) and not self._pulse.lost(now - _MAILBOX_SPAN):
            self._journal.count("downlink_dropped_mailbox")
            self._journal.violate("mailbox-overflow", f"more than {self._profile.mailbox} datagrams within 5 ms")
            return
        if not _SMALLEST <= len(datagram) <= _LARGEST:
            self._journal.violate("datagram-size", f"{len(datagram)} bytes")
        if self._cryptor is None:
            return
        if refusal := self._cryptor.refuse(datagram):
            self._journal.count(f"downlink_refused_{refusal}")
            self._journal.violate(_RULE_OF_REFUSAL[refusal], f"{refusal}: {datagram[:16].hex()}")
            return
        self._accept(self._cryptor, datagram)

    def _accept(self, cryptor: Cryptor, datagram: bytes) -> None:
        payload, skipped, meets = cryptor.open(datagram)
        self.touch()
        self._journal.count("downlink_accepted")
        self._journal.count("downlink_skipped", skipped)
        if meets:
            self._journal.violate("keystream", f"downlink packet {cryptor.last} meets another packet")
        self._events.audio(payload)


class _Waiting:
    """What the channel remembers between hellos."""

    def __init__(self) -> None:
        self.pending = False
        self.gave_up = False
        self.heard = float("-inf")
        self.keys: set[bytes] = set()
        self.sessions: set[str] = set()
