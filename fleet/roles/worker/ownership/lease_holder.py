"""Hold the leases of the shards that this worker owns, and run the shards."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from fleet.ground.errors import Unavailable
from fleet.ground.tasks import isolate
from fleet.roles.worker.ownership.lease import Clock, Lease, LeaseTable
from fleet.roles.worker.ownership.shard import Shard

log = logging.getLogger(__name__)

_RETRY_SECONDS = 0.5
_HANDLED_SECONDS = 1.0
"""Longest wait for the messages of a shard that is handed over."""
_END_SECONDS = 2.0
"""Longest wait until a shard's work has ended; its session sends DISCONNECT within one second."""
_BACKOFF_SECONDS = 2.0
"""Time after a hand-over in which this worker does not take the shard back."""

Announce = Callable[[int, str], None]
"""Announces that a shard was released: its number and the fence of its last owner."""


@dataclass(frozen=True, slots=True, eq=False)
class _OwnedShard:
    shard: Shard
    task: asyncio.Task[object]


class LeaseHolder:
    """Takes, renews and releases leases.

    Args:
        leases: This worker's leases.
        make: Makes a shard for a lease.
        announce: Announces a released shard to the other workers.
        clock: The time of this worker's leases.
    """

    def __init__(
        self,
        leases: LeaseTable,
        make: Callable[[int, Lease], Shard],
        announce: Announce,
        clock: Clock = time.monotonic,
    ) -> None:
        self._leases = leases
        self._clock = clock
        self._make = make
        self._announce = announce
        self._owned: dict[int, _OwnedShard] = {}
        self._former: dict[int, tuple[str, float]] = {}
        """Former shards: their last fence, and the time from which they may be taken again."""
        self._taking: set[int] = set()
        self._group: asyncio.TaskGroup | None = None
        self.closed = False
        """Whether no more shards are taken."""

    @property
    def owned(self) -> dict[int, Shard]:
        """The shards owned now, by number."""
        return {number: held.shard for number, held in self._owned.items()}

    @property
    def count(self) -> int:
        """Number of shards that are owned or being taken."""
        return len(self._owned) + len(self._taking)

    async def run(self) -> None:
        """Renew the leases until cancelled; then release all of them."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                await self._renew_all()
        finally:
            self._group = None
            await self._release_all()

    async def take(self, number: int, lost: str = "") -> None:
        """Take a shard, if it has no owner.

        Args:
            number: The shard.
            lost: The fence of an owner that lost its connection to the broker: its lease is replaced.

        Raises:
            Unavailable: Redis is away.
        """
        if self.closed or self._group is None or number in self._owned or number in self._taking:
            return
        self._taking.add(number)
        try:
            asked = self._clock()
            # Replace a former lease of this worker too: under a new fence the inbox is read from its oldest entry.
            owner = await self._leases.take(number, lost or self._former.get(number, ("", 0.0))[0])
            if owner is not None:
                self._start(number, Lease(owner, asked, self._leases.seconds, self._clock))
        finally:
            self._taking.discard(number)

    async def hand_over(self, number: int) -> None:
        """Finish the shard's messages, release its lease and announce that; the next owner continues its work."""
        held = self._owned.get(number)
        if held is None:
            return
        await held.shard.drain(_HANDLED_SECONDS)
        if self._owned.get(number) is not held:
            return
        fence = held.shard.owner.fence
        await self._drop(number, held)
        self._former[number] = (fence, self._clock() + _BACKOFF_SECONDS)
        try:
            await self._leases.release(number)
        except Unavailable as error:
            log.warning("lease not released", extra={"shard": number, "reason": str(error)})
            return
        self._announce(number, fence)
        log.info("handed a shard over", extra={"shard": number})

    async def drop_ended(self) -> None:
        """Drop shards whose task has ended."""
        for number, held in list(self._owned.items()):
            # While one is dropped, the renewal of the leases may drop another one.
            if held.task.done() and self._owned.get(number) is held:
                await self._drop(number, held)

    async def confirm(self, shard: Shard) -> bool:
        """Renew a shard's lease; return whether it is still held. While Redis is away, retry until the lease ends."""
        while shard.held:
            asked = self._clock()
            try:
                async with asyncio.timeout(shard.lease.left):
                    kept = await self._leases.renew(shard.number, shard.owner)
            except (Unavailable, TimeoutError) as error:
                log.warning("cannot renew a lease", extra={"shard": shard.number, "reason": str(error) or "no answer"})
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            if kept:
                shard.lease.extend(asked)
            return kept and shard.held
        return False

    def backs_off(self, number: int, fence: str = "") -> bool:
        """Return whether a shard was handed over (under `fence`, if given) so lately that others should take it."""
        former, until = self._former.get(number, ("", 0.0))
        return fence in ("", former) and self._clock() < until

    async def _renew_all(self) -> None:
        """Renew all leases; drop a shard at once if its lease cannot be renewed."""
        while True:
            async with asyncio.TaskGroup() as group:
                for number, held in list(self._owned.items()):
                    group.create_task(self._renew(number, held), name=f"renew {number}")
            await asyncio.sleep(self._leases.seconds / 3)

    async def _renew(self, number: int, held: _OwnedShard) -> None:
        if not held.task.done() and await self.confirm(held.shard):
            return
        if self._owned.get(number) is held:
            log.warning("lost a shard", extra={"shard": number})
            await self._drop(number, held)

    def _start(self, number: int, lease: Lease) -> None:
        if self._group is None:
            return
        shard = self._make(number, lease)
        work = shard.run()
        task = self._group.create_task(isolate(f"shard {number}", work), name=f"shard {number}")
        # A task that is cancelled before its first step never awaits its coroutine: close it.
        task.add_done_callback(lambda _: work.close())
        self._owned[number] = _OwnedShard(shard, task)
        log.debug("took a shard", extra={"shard": number})

    async def _drop(self, number: int, held: _OwnedShard) -> None:
        """End a shard: from now on nothing is published or written for it."""
        del self._owned[number]
        self._former[number] = (held.shard.owner.fence, 0.0)
        held.shard.lease.end()
        held.task.cancel()
        await asyncio.wait([held.task], timeout=_END_SECONDS)

    async def _release_all(self) -> None:
        """Release the leases of all shards; their tasks ended with the task group."""
        numbers = list(self._owned)
        self._owned.clear()
        try:
            async with asyncio.timeout(_END_SECONDS):
                for number in numbers:
                    await self._leases.release(number)
                await self._leases.retire()
        except (Unavailable, TimeoutError) as error:
            log.warning("leases not released", extra={"reason": str(error) or "no answer in time"})
