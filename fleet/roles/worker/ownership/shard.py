"""One shard while this worker owns it: its MQTT session, and everything that is done for its devices."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Protocol

from fleet.adapters.net.mqtt.session import MqttSession, Reading
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.adapters.redis.client.retries import passes
from fleet.adapters.redis.shards.owner import Owner
from fleet.ground.errors import Fenced, FleetError, Unavailable
from fleet.ground.log import fields
from fleet.ground.metrics import broker as metrics
from fleet.ground.tasks import Backoff, isolate
from fleet.roles.worker.ownership.device_executor import DeviceExecutor
from fleet.wire import dialects, topics
from fleet.wire.identity import Credentials
from fleet.wire.messages import DeviceCommand
from fleet.wire.mqtt.packets import Will

log = logging.getLogger(__name__)

BOOT_TOPIC = "fleet/broker/boot"
"""Where our Mosquitto plugin publishes when the broker began."""
RETRY_SECONDS = 8.0
"""How long a message is tried again while the store is away; then the broker is asked to keep it."""
_RECONNECT_SECONDS = 2.0


class DeviceReceiver(Protocol):
    """Whoever handles the messages of a shard's devices."""

    async def receive(self, shard: "Shard", kind: str, mac: str, payload: bytes) -> None:
        """Handle one message; its kind is `up`, `presence`, or `boot` of the broker."""


class Shard:
    """A shard under one lease.

    Args:
        number: Which shard.
        owner: The lease under which everything is written.
        session: Makes the shard's MQTT session, given what to do with a message.
        receiver: Handles the messages of the shard's devices, one device's in order.
        confirm: Says before every further connection whether the lease is still held.
    """

    def __init__(
        self,
        number: int,
        owner: Owner,
        session: Callable[["Shard"], MqttSession],
        receiver: DeviceReceiver,
        confirm: Callable[["Shard"], Awaitable[bool]],
    ) -> None:
        self.number = number
        self.owner = owner
        self.until = math.inf
        """When the lease may have ended, on the monotonic clock."""
        self.away_since: float | None = time.monotonic()
        """Since when its messages do not arrive, on the monotonic clock; None while they do."""
        self.executor = DeviceExecutor(self.spawn)
        self._open = session
        self._receiver = receiver
        self._confirm = confirm
        self._session: MqttSession | None = None
        self._group = asyncio.TaskGroup()
        self._ready = asyncio.Event()
        self._awaited: set[asyncio.Task[object]] = set()

    @property
    def connected(self) -> bool:
        """Whether the shard's messages arrive."""
        return self._session is not None and self._session.connected

    @property
    def held(self) -> bool:
        """Whether nobody else can own the shard.

        If not, nothing may be written, published or answered for it, and what runs for it ends without a word: its next
        owner goes on with it.
        """
        return time.monotonic() < self.until

    @property
    def turns(self) -> int:
        """How many turns of its devices run."""
        return sum(task.get_name().startswith("turn ") for task in self._awaited)

    async def run(self) -> None:
        """Serve the shard until cancelled or another worker's; then everything begun for its devices ends too."""
        try:
            async with self._group:
                await self._serve()
        except* Fenced:
            log.warning("the shard is another worker's now", extra={"shard": self.number})

    def spawn(self, what: str, work: Coroutine[None, None, None]) -> asyncio.Task[object]:
        """Start work that ends with the shard.

        Args:
            what: Names the work; `turn …` is waited for when the worker leaves, `alert …` when the shard is given away.
            work: Not yet awaited.

        Raises:
            Unavailable: The shard is being given up; the work was not begun.
        """
        guarded = isolate(what, work)
        try:
            task = self._group.create_task(guarded, name=what)
        except RuntimeError:
            guarded.close()
            work.close()
            raise Unavailable("the shard is being given up") from None
        # A task that is cancelled before it has begun never awaits its work.
        task.add_done_callback(lambda _: work.close())
        if what.startswith(("turn ", "alert ")):
            self._awaited.add(task)
            task.add_done_callback(self._awaited.discard)
        return task

    def publish(self, mac: str, command: DeviceCommand, dialect: str) -> None:
        """Publish a command to a device, once; nothing when its dialect has no words for it.

        Raises:
            Fenced: The lease may have ended; nothing was sent.
            Unavailable: The broker is away; nothing was sent.
        """
        self.check()
        if self._session is None:
            raise Unavailable("the broker is away")
        frame = dialects.find(dialect).send(command)
        log.debug("order", extra={"device": mac, "order": type(command).__name__, "bytes": len(frame)})
        if frame:
            self._session.publish(topics.down_topic(mac), frame)

    def check(self) -> None:
        """Return if nobody else can own the shard; to be asked before what no fence in Redis would refuse.

        Raises:
            Fenced: Somebody may.
        """
        if not self.held:
            raise Fenced(f"shard {self.number} may be another worker's")

    async def drain(self, seconds: float) -> None:
        """Take no more messages; wait until those that came are handled and acknowledged, at most so long.

        What a device is about to be shown, it is shown: nobody else would.
        """
        if self._session is not None:
            await self._session.drain(seconds)
        if alerts := [task for task in self._awaited if task.get_name().startswith("alert ")]:
            await asyncio.wait(alerts, timeout=seconds)

    async def receive(self, topic: str, payload: bytes) -> None:
        """Handle a message of the shard's session; returns when its effect is in Redis.

        Raises:
            Unavailable: It could not be handled now, nor may those that came after it be.
            Fenced: The shard is another worker's.
        """
        parsed = ("boot", "") if topic == BOOT_TOPIC else topics.parse(topic)
        if parsed is None:
            metrics.malformed.add("topic")
            log.warning("message on a topic that contradicts itself", extra={"topic": topic})
            return
        kind, mac = parsed
        session = self._session
        with fields(device=mac):
            log.debug("message", extra={"kind": kind, "bytes": len(payload)})
            await self.executor.run(mac, _MessageWork(self, session, kind, mac, payload))

    async def handle(self, session: MqttSession | None, kind: str, mac: str, payload: bytes) -> None:
        """Handle a message of the session that brought it, again and again while the store is away.

        Raises:
            Unavailable: It waits for the next session.
        """
        # What the broker kept may come before it lets us answer. If it never does, the message comes again. Its word
        # that all is subscribed is not waited for: that comes behind what it kept, and reading stops when that is much.
        await self._ready.wait()
        pauses, deadline = Backoff(first=0.1, limit=1.0), time.monotonic() + RETRY_SECONDS
        while session is self._session and self.held:
            try:
                return await self._receiver.receive(self, kind, mac, payload)
            except Unavailable as error:
                if _lasts(error):
                    log.error("message cannot be handled", extra={"reason": str(error)})  # noqa: TRY400 - not a crash
                    return None
                if time.monotonic() > deadline:
                    break
                log.warning("message will be tried again", extra={"reason": str(error)})
            await pauses.pause()
        # The broker sends it to the next session, and after it all that came later: this one handles none of them.
        if session is self._session:
            self._session = None
        raise Unavailable("it waits for the next session")

    async def _serve(self) -> None:
        pauses = Backoff(limit=_RECONNECT_SECONDS)
        while True:
            try:
                await self._connect(pauses)
            except (FleetError, OSError) as error:
                log.warning("shard not connected", extra={"shard": self.number, "reason": str(error)})
            await pauses.pause()
            # Another worker that took the shard over must not be thrown out of its session.
            if not await self._confirm(self):
                raise Fenced(f"shard {self.number} is another worker's")

    async def _connect(self, pauses: Backoff) -> None:
        session = self._session = self._open(self)

        def be_ready() -> None:
            pauses.reset()
            self.away_since = None

        try:
            await session.run(be_ready, self._ready.set)
        finally:
            self._ready.clear()
            self._session = None
            self.away_since = self.away_since or time.monotonic()


@dataclass(frozen=True, slots=True)
class _MessageWork:
    """A message of a shard's session."""

    shard: Shard
    session: MqttSession | None
    kind: str
    mac: str
    payload: bytes

    async def run(self) -> None:
        await self.shard.handle(self.session, self.kind, self.mac, self.payload)


def shard_session(shard: Shard, address: MqttAddress, credentials: Credentials, shards: int) -> MqttSession:
    """Return the persistent MQTT session of a shard, not yet connected."""
    return MqttSession(
        address,
        credentials,
        persistent=True,
        will=Will(topics.lost_topic(shard.number), shard.owner.fence.encode()),
        reading=Reading([*topics.shard_filters(shard.number, shards), BOOT_TOPIC], shard.receive),
    )


def _lasts(error: Unavailable) -> bool:
    """Whether the store refused for good, as it would the next time."""
    return error.__cause__ is not None and not passes(error.__cause__)
