"""Handling messages: begun in order of arrival, side by side up to a bound, acknowledged in order of arrival."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from fleet.ground.errors import Fenced, Unavailable
from fleet.ground.tasks import isolate
from fleet.wire.mqtt.packets import Publish

log = logging.getLogger(__name__)

ACKNOWLEDGE_SECONDS = 0.02
"""How long acknowledgements wait for more: each packet of them costs the broker and this process a wake-up. A broker
sends on while fewer than its `max_inflight_messages` wait."""

LARGEST_HELD = 2 * 1024 * 1024
"""Bytes of the messages that are handled at a time: a worker has one session for each of its shards."""

OnMessage = Callable[[str, bytes], Awaitable[None]]


class _Pending:
    """A QoS 1 message from its arrival until its acknowledgement."""

    __slots__ = ("handled", "packet_id")

    def __init__(self, packet_id: int) -> None:
        self.packet_id = packet_id
        self.handled = False


class Inbox:
    """Runs a handler for every message and acknowledges messages in order of arrival.

    A handler that fails is logged and its message acknowledged, or it would come again for ever. Two leave theirs
    unacknowledged: one that is cancelled by `close`, and one that fails with `Unavailable` or `Fenced`, which says that
    another connection, or another process, may handle it; then `on_refused` is called. Acknowledgements keep the order
    of arrival because the protocol asks it (MQTT-4.6.0-2) and rumqttd closes the connection otherwise, so a slow
    handler holds back those behind it.

    Args:
        on_message: Called with topic and payload; its synchronous head runs in order of arrival.
        acknowledge: Called with the packet ids of handled messages, in order, some at a time.
        on_full: Called with True when messages begin to wait, and with False when none waits any more.
        on_refused: Called with the reason why a message cannot be handled now; nothing after it is acknowledged.
        bound: Most handlers at a time, of messages of together `LARGEST_HELD` bytes. What is beyond it waits; the
            caller stops reading, so that this is little.
    """

    def __init__(
        self,
        on_message: OnMessage,
        acknowledge: Callable[[Sequence[int]], None],
        on_full: Callable[[bool], None],
        on_refused: Callable[[str], None],
        bound: int,
    ) -> None:
        self._on_message = on_message
        self._acknowledge = acknowledge
        self._on_full = on_full
        self._on_refused = on_refused
        self._bound = bound
        self._held = 0
        self._waiting: deque[tuple[Publish, _Pending | None]] = deque()
        self._pending: deque[_Pending] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._settling = False
        self._closed = False

    def put(self, group: asyncio.TaskGroup, message: Publish) -> None:
        """Handle a message in `group`, now or as soon as fewer than `bound` are being handled."""
        if self._closed:
            return
        pending = None
        if message.packet_id:
            pending = _Pending(message.packet_id)
            self._pending.append(pending)
        if message.skipped:
            log.warning("message too large", extra={"topic": message.topic})
            self._finish(pending)
        elif self._has_room and not self._waiting:
            self._start(group, message, pending)
        else:
            if not self._waiting:
                self._on_full(True)
            self._waiting.append((message, pending))

    @property
    def _has_room(self) -> bool:
        return len(self._tasks) < self._bound and self._held < LARGEST_HELD

    async def settled(self) -> None:
        """Wait until every message that has come is handled and, in order, acknowledged."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))
        self._settle()

    def close(self) -> None:
        """Acknowledge what has been handled, cancel the other handlers and drop what waits."""
        self._settle()
        self._closed = True
        self._waiting.clear()
        for task in self._tasks:
            task.cancel()

    def _start(self, group: asyncio.TaskGroup, message: Publish, pending: _Pending | None) -> None:
        task = group.create_task(self._handle(message, pending), name="mqtt message")
        self._tasks.add(task)
        self._held += len(message.payload)
        task.add_done_callback(lambda done: self._next(group, done, len(message.payload)))

    def _next(self, group: asyncio.TaskGroup, done: asyncio.Task[None], size: int) -> None:
        self._tasks.discard(done)
        self._held -= size
        waited = bool(self._waiting)
        while self._waiting and self._has_room and not self._closed:
            self._start(group, *self._waiting.popleft())
        if waited and not self._waiting and not self._closed:
            self._on_full(False)

    async def _handle(self, message: Publish, pending: _Pending | None) -> None:
        try:
            if not await self._call(message):
                return
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody cancelled this task: something that the handler awaits was cancelled, a failure like others.
            log.warning("work failed", extra={"work": "mqtt message", "kind": "CancelledError"})
        self._finish(pending)

    async def _call(self, message: Publish) -> bool:
        """Return whether the message needs no other attempt."""

        async def call() -> None:  # a handler that is no coroutine function may raise at once
            await self._on_message(message.topic, message.payload)

        failure = await isolate("mqtt message", call(), (Unavailable, Fenced))
        if isinstance(failure, Unavailable | Fenced):
            self._on_refused(str(failure))
            return False
        return True

    def _finish(self, pending: _Pending | None) -> None:
        if pending is None:
            return
        pending.handled = True
        if not self._settling and self._pending[0].handled:
            self._settling = True
            asyncio.get_running_loop().call_later(ACKNOWLEDGE_SECONDS, self._settle)

    def _settle(self) -> None:
        self._settling = False
        packet_ids: list[int] = []
        while self._pending and self._pending[0].handled:
            packet_ids.append(self._pending.popleft().packet_id)
        if packet_ids and not self._closed:
            self._acknowledge(packet_ids)
