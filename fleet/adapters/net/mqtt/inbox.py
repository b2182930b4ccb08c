"""Handling of messages: started in order of arrival, concurrent up to a bound, acknowledged in order of arrival."""

import asyncio
import functools
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, cast

from fleet.ground.eager_tasks import start_now
from fleet.ground.errors import Fenced, Unavailable
from fleet.ground.tasks import Ended, isolate
from fleet.wire.mqtt.packets import Publish

log = logging.getLogger(__name__)

ACKNOWLEDGE_SECONDS = 0.02
"""Longest time for which acknowledgements are collected: each packet of them wakes up the broker. All sessions of a
process send theirs at the same moments, multiples of this time, so that this process wakes up once for all. A broker
continues to send while fewer than its `max_inflight_messages` are unacknowledged."""

LARGEST_HELD = 2 * 1024 * 1024
"""Bytes of messages handled at a time; a worker has one session for each of its shards."""

OnMessage = Callable[[str, bytes], Coroutine[Any, Any, None] | Ended]
"""Handles a message: a coroutine function, or a function that raises nothing and begins work that has its own task."""


class _Pending:
    """A QoS 1 message from its arrival until its acknowledgement."""

    __slots__ = ("handled", "packet_id")

    def __init__(self, packet_id: int) -> None:
        self.packet_id = packet_id
        self.handled = False


class Inbox:
    """Runs a handler for every message and acknowledges messages in order of arrival.

    The failure of a coroutine is logged and its message acknowledged; otherwise it would arrive again for ever. There
    are two exceptions. `close` cancels handlers and leaves their messages unacknowledged. A handler that fails with
    `Unavailable` or `Fenced` leaves its message unacknowledged, so that another connection or process handles it; then
    `on_refused` is called. Acknowledgements keep the order of arrival because the protocol requires it (MQTT-4.6.0-2)
    and rumqttd closes the connection otherwise; so a slow handler delays the acknowledgements after it.

    Args:
        on_message: Called with topic and payload; its code before the first await runs in order of arrival.
        acknowledge: Called with the packet ids of handled messages, in order, several at a time.
        on_full: Called with True when messages begin to wait, and with False when none waits any more.
        on_refused: Called with the reason why a message cannot be handled now; later ones are not acknowledged.
        bound: Most handlers at a time, for messages of at most `LARGEST_HELD` bytes together. Further messages wait;
            the caller stops reading, so that they are few.
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
        self._handlers: dict[Ended, _Pending | None] = {}
        self._settling = False
        self._closed = False

    def put(self, group: asyncio.TaskGroup, message: Publish) -> None:
        """Handle a message in `group`, now or as soon as fewer than `bound` are being handled."""
        if self._closed:
            return
        topic, payload, packet_id, _ = message
        pending = None
        if packet_id:
            pending = _Pending(packet_id)
            self._pending.append(pending)
        if not payload and message.skipped:
            log.warning("message too large", extra={"topic": topic})
            self._finish(pending)
        elif not self._waiting and self._has_room():
            self._start(group, topic, payload, pending)
        else:
            if not self._waiting:
                self._on_full(True)
            self._waiting.append((message, pending))

    def _has_room(self) -> bool:
        return len(self._handlers) < self._bound and self._held < LARGEST_HELD

    async def settled(self) -> None:
        """Wait until every received message is handled and acknowledged."""
        while self._handlers:
            await asyncio.wait(set(self._handlers))
        self._settle()

    def close(self) -> None:
        """Acknowledge handled messages, cancel the running handlers and drop waiting messages."""
        for handler in [one for one in self._handlers if one.done()]:
            self._settle_one(self._handlers.pop(handler), handler)
        self._settle()
        self._closed = True
        self._waiting.clear()
        for handler in self._handlers:
            handler.cancel()

    def _start(self, group: asyncio.TaskGroup, topic: str, payload: bytes, pending: _Pending | None) -> None:
        handler, size = self._on_message(topic, payload), len(payload)
        if not isinstance(handler, asyncio.Future):
            work = isolate("mqtt message", handler, (Unavailable, Fenced))
            handler = cast("Ended", start_now(group, "mqtt message", work))
        if handler.done():
            self._settle_one(pending, handler)
            return
        self._held += size
        self._handlers[handler] = pending
        handler.add_done_callback(functools.partial(self._next, group, size))

    def _next(self, group: asyncio.TaskGroup, size: int, ended: Ended) -> None:
        self._held -= size
        if ended in self._handlers:
            self._settle_one(self._handlers.pop(ended), ended)
        if self._waiting:
            self._start_waiting(group)

    def _start_waiting(self, group: asyncio.TaskGroup) -> None:
        while self._waiting and self._has_room() and not self._closed:
            message, pending = self._waiting.popleft()
            self._start(group, message.topic, message.payload, pending)
        if not self._waiting and not self._closed:
            self._on_full(False)

    def _settle_one(self, pending: _Pending | None, ended: Ended) -> None:
        if ended.cancelled():
            if self._closed:
                return
            # Not the handler was cancelled but something that it awaits: an ordinary failure.
            log.warning("work failed", extra={"work": "mqtt message", "kind": "CancelledError"})
        elif isinstance(failure := ended.result(), Unavailable | Fenced):
            self._on_refused(str(failure))
            return
        self._finish(pending)

    def _finish(self, pending: _Pending | None) -> None:
        if pending is None:
            return
        pending.handled = True
        if not self._settling and self._pending[0].handled:
            self._settling = True
            loop = asyncio.get_running_loop()
            loop.call_at((loop.time() // ACKNOWLEDGE_SECONDS + 1) * ACKNOWLEDGE_SECONDS, self._settle)

    def _settle(self) -> None:
        self._settling = False
        packet_ids: list[int] = []
        while self._pending and self._pending[0].handled:
            packet_ids.append(self._pending.popleft().packet_id)
        if packet_ids and not self._closed:
            self._acknowledge(packet_ids)
