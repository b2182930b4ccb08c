"""One shard while this worker owns it: its MQTT session, and the tasks of its devices."""

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Protocol

from fleet.adapters.net.mqtt.session import MqttSession, Reading
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.adapters.redis.client.retries import passes
from fleet.adapters.redis.shards.owner import Owner
from fleet.ground.errors import Fenced, FleetError, Unavailable
from fleet.ground.metrics import broker as metrics
from fleet.ground.tasks import Backoff, Ended, isolate
from fleet.roles.worker.ownership.device_executor import DeviceExecutor
from fleet.roles.worker.ownership.lease import Lease
from fleet.roles.worker.ownership.waiting_presence import WaitingPresence
from fleet.wire import dialects, topics
from fleet.wire.identity import Credentials
from fleet.wire.messages import DeviceCommand
from fleet.wire.mqtt.packets import Will

log = logging.getLogger(__name__)

BOOT_TOPIC = "fleet/broker/boot"
"""On this topic the fleet plugin of Mosquitto publishes the broker's start time."""
RETRY_SECONDS = 8.0
"""Time for which a message is retried while Redis is away; then the session ends, so that the broker keeps it."""
_RECONNECT_SECONDS = 2.0


class DeviceReceiver(Protocol):
    """Handles the messages of a shard's devices."""

    def take(self, mac: str, payload: bytes) -> asyncio.Future[bool] | None:
        """Begin to handle a message that needs neither task nor order; None, or a failure, if `receive` must do it."""

    def expect(self, mac: str, payload: bytes, ended: Ended) -> WaitingPresence:
        """Note a presence as it arrives; an older one of the device that waits may be ended, and is left out then."""

    def receive(self, shard: "Shard", kind: str, mac: str, message: bytes | WaitingPresence) -> Awaitable[None]:
        """Handle one message; its kind is `up`, or `boot` of the broker, or `presence` with what `expect` returned."""


class ShardSession(Protocol):
    """A shard's MQTT session (`fleet.adapters.net.mqtt.session.MqttSession`)."""

    @property
    def connected(self) -> bool:
        """Whether it may publish."""

    async def run(self, on_ready: Callable[[], None], on_greeted: Callable[[], None]) -> None:
        """Connect and receive until the connection is lost; `on_greeted` is called when it may publish."""

    def publish(self, topic: str, payload: bytes) -> None:
        """Publish once, or raise `Unavailable` or `Overloaded`."""

    async def drain(self, seconds: float) -> None:
        """Take no more messages; wait until the received ones are acknowledged."""


class Shard:
    """A shard under one lease.

    Args:
        number: The shard's number.
        lease: The lease; all writes for the shard carry its owner's fence.
        session: Makes the shard's MQTT session.
        receiver: Handles the messages of the shard's devices; those of one device in order.
        confirm: Is asked before each reconnection whether the lease is still held.
    """

    def __init__(
        self,
        number: int,
        lease: Lease,
        session: Callable[["Shard"], ShardSession],
        receiver: DeviceReceiver,
        confirm: Callable[["Shard"], Awaitable[bool]],
    ) -> None:
        self.number = number
        self.lease = lease
        self.disconnected_since: float | None = lease.clock()
        """When the connection was lost, on the lease's clock; None while connected."""
        self.filters: frozenset[str] = frozenset()
        """Topic filters of its devices; empty: all messages are of its devices."""
        self._group = asyncio.TaskGroup()
        self.executor = DeviceExecutor(self._group)
        self._open = session
        self._receiver = receiver
        self._confirm = confirm
        self._session: ShardSession | None = None
        self._ready = asyncio.Event()
        self._awaited: set[asyncio.Task[object]] = set()

    @property
    def connected(self) -> bool:
        """Whether the shard's MQTT session is connected."""
        return self._session is not None and self._session.connected

    @property
    def owner(self) -> Owner:
        """The owner that the lease names."""
        return self.lease.owner

    @property
    def held(self) -> bool:
        """Whether the lease is surely held, so that no other worker can own the shard.

        If not, nothing may be written or published for the shard; its tasks end silently. Its next owner goes on.
        """
        return self.lease.held

    @property
    def turns(self) -> int:
        """Number of running turns of its devices."""
        return sum(task.get_name().startswith("turn ") for task in self._awaited)

    async def run(self) -> None:
        """Serve the shard until cancelled, or until another worker owns it; then all its tasks end."""
        try:
            async with self._group:
                await self._serve()
        except* Fenced:
            log.warning("another worker owns the shard now", extra={"shard": self.number})

    def spawn(self, what: str, work: Coroutine[None, None, None]) -> asyncio.Task[object]:
        """Start work that ends with the shard.

        Args:
            what: Name of the task. A worker that ends waits for `turn …`; a hand-over of the shard waits for `alert …`.
            work: A coroutine that has not begun.

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
        # A task that is cancelled before its first step never awaits its coroutine: close it.
        task.add_done_callback(lambda _: work.close())
        if what.startswith(("turn ", "alert ")):
            self._awaited.add(task)
            task.add_done_callback(self._awaited.discard)
        return task

    def publish(self, mac: str, command: DeviceCommand, dialect: str) -> None:
        """Publish a command to a device, once; do nothing if its dialect has no such command.

        Raises:
            Fenced: The lease may have ended; nothing was sent.
            Unavailable: The broker is away; nothing was sent.
        """
        self.check()
        if self._session is None:
            raise Unavailable("the broker is away")
        frame = dialects.find(dialect).send(command)
        log.debug("command", extra={"device": mac, "kind": type(command).__name__, "bytes": len(frame)})
        if frame:
            self._session.publish(topics.down_topic(mac), frame)

    def check(self) -> None:
        """Check that the lease is held; call this before an effect that no fence in Redis protects.

        Raises:
            Fenced: Another worker may own the shard.
        """
        if not self.lease.held:
            raise Fenced(f"another worker may own shard {self.number}")

    async def drain(self, seconds: float) -> None:
        """Take no more messages; wait at most `seconds` until the received ones are handled and acknowledged.

        Alerts that are about to be shown are waited for too: the next owner does not know of them.
        """
        if self._session is not None:
            await self._session.drain(seconds)
        if alerts := [task for task in self._awaited if task.get_name().startswith("alert ")]:
            await asyncio.wait(alerts, timeout=seconds)

    def receive(self, topic: str, payload: bytes) -> Ended:
        """Begin to handle a message of the shard's session.

        Returns:
            The end of it, when its effect is in Redis. Its failure is `Unavailable` if it could not be handled and
            later messages must wait for it, `Fenced` if another worker owns the shard.
        """
        ended: Ended = asyncio.get_running_loop().create_future()
        try:
            self._dispatch(topic, payload, ended)
        except Unavailable as error:
            ended.set_result(error)
        return ended

    def _dispatch(self, topic: str, payload: bytes, ended: Ended) -> None:
        kind, mac = topics.parse(topic) or (("boot", "") if topic == BOOT_TOPIC else ("", ""))
        if not kind:
            metrics.malformed.add("topic")
            log.warning("message on an invalid topic", extra={"topic": topic})
            ended.set_result(None)
            return
        if mac and self.filters and f"{topic.rpartition('/')[0]}/+" not in self.filters:
            # Subscriptions of a worker with another FLEET_SHARDS stay in the session. The fence of this shard does not
            # fit their devices, so one such message would end every connection; the right shard receives it too.
            ended.set_result(None)
            return
        log.debug("message", extra={"device": mac, "kind": kind, "bytes": len(payload)})
        message = self._receiver.expect(mac, payload, ended) if kind == "presence" else payload
        work = functools.partial(self._handle, self._session, kind, mac, message, ended)
        taken = None
        if kind == "up" and self._session is not None and self._ready.is_set() and self.lease.held:
            taken = None if self.executor.has_work(mac) else self._receiver.take(mac, payload)
        if taken is None:
            self.executor.submit(mac, work, ended)
        else:
            self.executor.follow(mac, taken, work, ended)

    async def _handle(
        self, session: ShardSession | None, kind: str, mac: str, message: bytes | WaitingPresence, ended: Ended
    ) -> None:
        """Handle a message that is not ended, if its session is still the shard's; retry while Redis is away.

        Raises:
            Unavailable: The broker will deliver it again in the next session.
        """
        # The broker may deliver kept messages before the session may publish: wait for CONNACK. If it never comes, the
        # broker delivers the message again. Do not wait for SUBACK: it comes after all kept messages, and reading stops
        # when too many of them wait here.
        if not self._ready.is_set():
            await self._ready.wait()
        pauses, deadline = None, self.lease.clock() + RETRY_SECONDS
        while session is not None and session is self._session and self.lease.held:
            if ended.done():
                return None
            try:
                return await self._receiver.receive(self, kind, mac, message)
            except Unavailable as error:
                if _is_permanent(error):
                    log.error("message cannot be handled", extra={"reason": str(error)})  # noqa: TRY400 - not a crash
                    return None
                if self.lease.clock() > deadline:
                    break
                log.warning("message will be tried again", extra={"reason": str(error)})
            pauses = pauses or Backoff(first=0.1, limit=1.0)
            await pauses.pause()
        # The broker delivers this message and all later ones to the next session. So this session handles none of them.
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
            # Reconnect only with the lease: a connection would take the MQTT session from a new owner.
            if not await self._confirm(self):
                raise Fenced(f"another worker owns shard {self.number}")

    async def _connect(self, pauses: Backoff) -> None:
        session = self._session = self._open(self)

        def be_ready() -> None:
            pauses.reset()
            self.disconnected_since = None
            log.debug("shard connected", extra={"shard": self.number})

        try:
            await session.run(be_ready, self._ready.set)
        finally:
            self._ready.clear()
            self._session = None
            self.disconnected_since = self.disconnected_since or self.lease.clock()


def shard_session(shard: Shard, address: MqttAddress, credentials: Credentials, shards: int) -> MqttSession:
    """Return the persistent MQTT session of a shard, not yet connected. The shard drops others' messages now."""
    filters = topics.shard_filters(shard.number, shards)
    shard.filters = frozenset(filters)
    return MqttSession(
        address,
        credentials,
        persistent=True,
        will=Will(topics.lost_topic(shard.number), shard.owner.fence.encode()),
        reading=Reading([*filters, BOOT_TOPIC], shard.receive),
    )


def _is_permanent(error: Unavailable) -> bool:
    """Return whether a retry would fail in the same way."""
    return error.__cause__ is not None and not passes(error.__cause__)
