"""Make operators' calls of the owned shards: of one device one after the other, in its own order of work."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial

from fleet.adapters.redis.devices.tenants import DeviceTenants
from fleet.adapters.redis.sessions.calls import OperatorEnd
from fleet.adapters.redis.shards.device_looks import DeviceLooks, DeviceNow
from fleet.adapters.redis.shards.operator_calls import OperatorCalls, QueuedCall
from fleet.core.tool_kinds import QUICK, kind_of
from fleet.ground.errors import Fenced, FleetError, Unavailable
from fleet.ground.tasks import Backoff, keep_running
from fleet.roles.worker.announcements.delivery import AnnouncementDelivery
from fleet.roles.worker.announcements.once import deliver_once
from fleet.roles.worker.calls.call_terms import CallTerms
from fleet.roles.worker.calls.device_calls import DeviceCalls, Outcome
from fleet.roles.worker.calls.device_tools import renew_camera_token
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.resources import WorkerResources
from fleet.wire import dialects
from fleet.wire.announcements import DeviceAnnouncement
from fleet.wire.messages import CallToolCommand
from fleet.wire.operator_calls import OperatorCall

log = logging.getLogger(__name__)

RETRY_SECONDS = 30.0
"""Longest time for which a call is retried while Redis is away; then it waits for the shard's next owner."""
AT_ONCE = 16
"""Calls that are being started at a time. A job hands over hundreds at once: turns wait for a few of them, not for all.
"""
_IDLE_PAUSE = 0.2

_Queue = deque[tuple[QueuedCall, OperatorCall, DeviceNow | None]]
"""With what was known of the device when the call was read, if no other call of it was in front."""


class OperatorCallRunner:
    """Runs the queues of the owned shards.

    An entry stays in its queue until the outcome is written, so that the shard's next owner finds it; `DeviceCalls`
    then sends nothing twice.

    Args:
        resources: Of the worker.
        queues: Of all shards.
        calls: Calls the devices.
        owned: Returns the shards that this worker owns now.
        announcements: Delivers those calls that are announcements.
    """

    def __init__(
        self,
        resources: WorkerResources,
        queues: OperatorCalls,
        calls: DeviceCalls,
        owned: Callable[[], dict[int, Shard]],
        announcements: AnnouncementDelivery,
    ) -> None:
        self._resources = resources
        self._queues, self._looks = queues, DeviceLooks(resources.store)
        self._calls, self._tenants = calls, DeviceTenants(resources.store)
        self._owned = owned
        self._announcements = announcements
        self._read: dict[int, tuple[str, str]] = {}
        """By shard: the fence under which its queue was read, and the id of the last entry."""
        self._waiting: dict[tuple[str, str], _Queue] = {}
        """The waiting calls by fence and device; the queues bound their number."""
        self._starts = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        """Read until cancelled."""
        backoff = Backoff(limit=2.0)
        await keep_running("operators' calls", lambda: self._read_on(backoff), backoff)

    async def _read_on(self, backoff: Backoff) -> None:
        while True:
            shards = self._owned()
            if not shards:
                await asyncio.sleep(_IDLE_PAUSE)
                continue
            entries = await self._queues.read({number: self._after(shard) for number, shard in shards.items()})
            known = await self._looks.look({one.call.device for one in entries if one.call is not None})
            backoff.reset()
            for entry in entries:
                shard = shards[entry.shard]
                self._read[entry.shard] = (shard.owner.fence, entry.id)
                self._take(shard, entry, known)

    def _after(self, shard: Shard) -> str:
        """Return the last entry read under the present lease; a new owner begins with the oldest entry."""
        fence, last = self._read.get(shard.number, ("", "0"))
        return last if fence == shard.owner.fence else "0"

    def _take(self, shard: Shard, entry: QueuedCall, known: Mapping[str, DeviceNow]) -> None:
        """Queue a call behind the earlier ones of its device."""
        call = entry.call
        if call is None:
            shard.spawn(f"operator call {entry.id}", self._queues.discard(entry))
            return
        key = (shard.owner.fence, call.device)
        if key in self._waiting:
            self._waiting[key].append((entry, call, None))
            return
        queue = self._waiting[key] = deque([(entry, call, known[call.device])])
        try:
            task = shard.spawn(f"operator calls {call.device}", self._drain(shard, key, queue))
        except Unavailable:
            self._drop(key, queue)
            return
        task.add_done_callback(lambda _: self._drop(key, queue))

    async def _drain(self, shard: Shard, key: tuple[str, str], queue: _Queue) -> None:
        while queue:
            entry, call, known = queue.popleft()
            await self._serve(shard, entry, call, known)
        # At once: a call that came before the task's end is noticed would stay in a queue that nobody serves.
        self._drop(key, queue)

    def _drop(self, key: tuple[str, str], queue: _Queue) -> None:
        if self._waiting.get(key) is queue:
            del self._waiting[key]

    async def _serve(self, shard: Shard, entry: QueuedCall, call: OperatorCall, known: DeviceNow | None) -> None:
        """Make a call and write its outcome; retry while Redis is away."""
        clock, pauses = asyncio.get_running_loop().time, Backoff(limit=2.0)
        until = clock() + RETRY_SECONDS
        while True:
            try:
                end = OperatorEnd(shard.owner, call.call, entry.id)
                outcome = await self._make(shard, call, known, end)
                if not end.done:
                    await self._queues.end(shard.owner, call, outcome.status, outcome.text, entry.id)
            except Fenced:
                raise
            except FleetError as error:
                log.warning("operator's call will be tried again", extra={"call": call.call, "reason": str(error)})
                known = None
                if clock() >= until:
                    return
                await pauses.pause()
            else:
                about = {"call": call.call, "device": call.device, "tool": call.tool, "outcome": outcome.status}
                log.info("operator's call ended", extra=about)
                return

    async def _make(self, shard: Shard, call: OperatorCall, known: DeviceNow | None, end: OperatorEnd) -> Outcome:
        """Publish a call after all earlier work of its device, and before all later; wait for its end."""
        mac, place = call.device, _Place(self._starts)
        if call.announcement is not None:
            wanted = partial(self._is_wanted, call, call.announcement)
            deliver = partial(self._announcements.deliver, shard, mac, call.call, call.announcement, wanted)
            return await deliver_once(self._resources.calls, mac, end, deliver)
        loop = asyncio.get_running_loop()
        due: asyncio.Future[None] = loop.create_future()
        sent: asyncio.Future[Outcome] = loop.create_future()
        sent.add_done_callback(lambda _: place.leave())
        try:
            await place.take()
            device = known or (await self._looks.look([mac]))[mac]
            shard.executor.submit(mac, lambda: _hold(due, sent))
            if not due.done():  # The device has earlier work, which may take long.
                place.leave()
                await due
                await place.take()
            await renew_camera_token(self._resources, shard, mac, device.dialect, call.tool)
            command = CallToolCommand(0, call.tool, call.arguments, device.session)
            return await self._calls.call(shard, mac, command, self._terms(call, device.dialect, end), sent)
        finally:
            sent.cancel()

    async def _is_wanted(self, call: OperatorCall, announcement: DeviceAnnouncement) -> bool:
        """Whether an announcement is still to be told: not if it was stopped, or its device was moved since."""
        if await self._queues.is_recalled(call.device, call.call):
            return False
        return not (announcement.tenant and await self._tenants.is_foreign(call.device, announcement.tenant))

    def _terms(self, call: OperatorCall, dialect: str, end: OperatorEnd) -> CallTerms:
        kind = kind_of(call.tool) if dialects.find(dialect).capabilities.firmware_tools else QUICK
        return CallTerms(
            "",
            call.call,
            max(kind.seconds, self._resources.settings.tool_seconds),
            leaves=kind.leaves,
            fails_if_answered=kind.fails_if_answered,
            dialect=dialect,
            operator=True,
            idle=call.idle,
            # The answer to others is not their outcome.
            end=None if kind.leaves or kind.fails_if_answered else end,
        )


class _Place:
    """One of a few places; taken and left at most once at a time."""

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places, self._taken = places, False

    async def take(self) -> None:
        await self._places.acquire()
        self._taken = True

    def leave(self) -> None:
        if self._taken:
            self._taken = False
            self._places.release()


async def _hold(due: asyncio.Future[None], sent: asyncio.Future[Outcome]) -> None:
    """Say that the device's earlier work is done, and hold up its later work until the call was sent or ended."""
    if not due.done():
        due.set_result(None)
    await asyncio.wait([sent])
