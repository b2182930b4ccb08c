"""One shard while this worker owns it: its MQTT session, and everything that is done for its devices."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine

from fleet.errors import Unavailable
from fleet.link.mqtt import MqttSession, Reading
from fleet.link.mqtt_packets import Will
from fleet.link.mqtt_url import MqttAddress
from fleet.log import fields
from fleet.store.owner import Owner
from fleet.tasks import Backoff, isolate, keep_running
from fleet.wire import topics
from fleet.wire.dialect_xiaozhi import DIALECT
from fleet.wire.identity import Credentials
from fleet.wire.words import Order
from fleet.worker.lanes import Lanes

log = logging.getLogger(__name__)

Receive = Callable[["Shard", str, str, bytes], Awaitable[None]]
"""Handles one message: shard, kind (`up` or `presence`), mac, payload."""


class Shard:
    """A shard under one lease.

    Args:
        number: Which shard.
        owner: The lease under which everything is written.
        session: Makes the shard's MQTT session, given what to do with a message.
        receive: Handles the messages of the shard's devices, one device's in order.
    """

    def __init__(self, number: int, owner: Owner, session: Callable[["Shard"], MqttSession], receive: Receive) -> None:
        self.number = number
        self.owner = owner
        self._make_session = session
        self._receive = receive
        self._session: MqttSession | None = None
        self._group = asyncio.TaskGroup()
        self._ready = asyncio.Event()
        self.lanes = Lanes(self.spawn)

    @property
    def connected(self) -> bool:
        """Whether the shard's messages arrive."""
        return self._session is not None and self._session.connected

    async def run(self) -> None:
        """Serve the shard until cancelled; then everything that was begun for its devices ends too."""
        async with self._group:
            backoff = Backoff()
            await keep_running(f"shard {self.number}", lambda: self._connect(backoff), backoff)

    def spawn(self, what: str, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Start work that ends with the shard.

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
        return task

    def tell(self, mac: str, order: Order) -> None:
        """Send a device an order, once.

        Raises:
            Unavailable: The broker is away; nothing was sent.
        """
        if self._session is None:
            raise Unavailable("the broker is away")
        self._session.publish(topics.down_topic(mac), DIALECT.send(order))

    async def receive(self, topic: str, payload: bytes) -> None:
        """Handle a message of the shard's session; returns when its effect is in Redis."""
        parsed = topics.parse(topic)
        if parsed is None:
            log.warning("message on a topic that contradicts itself", extra={"topic": topic})
            return
        kind, mac = parsed
        with fields(device=mac):
            await self.lanes.run(mac, lambda: self._handle(kind, mac, payload))

    async def _handle(self, kind: str, mac: str, payload: bytes) -> None:
        # What the broker kept comes before it lets us answer. If it never does, the message comes again.
        await self._ready.wait()
        await self._receive(self, kind, mac, payload)

    async def _connect(self, backoff: Backoff) -> None:
        session = self._make_session(self)
        self._session = session

        def be_ready() -> None:
            backoff.reset()
            self._ready.set()

        try:
            await session.run(be_ready)
        finally:
            self._ready.clear()
            self._session = None


def shard_session(shard: Shard, address: MqttAddress, credentials: Credentials, shards: int) -> MqttSession:
    """Return the persistent MQTT session of a shard, not yet connected."""
    return MqttSession(
        address,
        credentials,
        persistent=True,
        will=Will(topics.lost_topic(shard.number), b""),
        reading=Reading(topics.shard_filters(shard.number, shards), shard.receive),
    )
