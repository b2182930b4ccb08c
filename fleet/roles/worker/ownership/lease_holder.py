"""The shards that this worker owns: leases taken, renewed and given back, and what runs under them."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from fleet.adapters.redis.shards.leases import Leases
from fleet.adapters.redis.shards.owner import Owner
from fleet.ground.errors import Unavailable
from fleet.ground.tasks import isolate
from fleet.roles.worker.ownership.shard import Shard

log = logging.getLogger(__name__)

_RETRY_SECONDS = 0.5
_HANDLED_SECONDS = 1.0
"""Longest wait until the messages of a shard that is given away are handled."""
_END_SECONDS = 2.0
"""Longest wait until a shard's work has ended; its session says DISCONNECT within one."""
_SHY_SECONDS = 2.0
"""How long a shard that was given away is left to the others."""
_SAFETY = 0.95
"""Part of a lease's time after which it is not relied on: clocks differ."""

Announce = Callable[[int, str], None]
"""Tells the others that a shard was given back: its number and the fence of its last owner."""


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    shard: Shard
    task: asyncio.Task[object]


class LeaseHolder:
    """Takes, keeps and gives away.

    Args:
        leases: This worker's leases.
        make: Makes a shard for a lease.
        announce: Tells the others of a shard that was given back.
    """

    def __init__(self, leases: Leases, make: Callable[[int, Owner], Shard], announce: Announce) -> None:
        self._leases = leases
        self._make = make
        self._announce = announce
        self._owned: dict[int, _Held] = {}
        self._former: dict[int, tuple[str, float]] = {}
        """Of shards that were owned: under which fence, and when on the monotonic clock they may be taken again."""
        self._taking: set[int] = set()
        self._group: asyncio.TaskGroup | None = None
        self.closed = False
        """Whether no more are taken."""

    @property
    def owned(self) -> dict[int, Shard]:
        """The shards owned now, by number."""
        return {number: held.shard for number, held in self._owned.items()}

    @property
    def count(self) -> int:
        """How many shards are owned, or will be in a moment."""
        return len(self._owned) + len(self._taking)

    async def run(self) -> None:
        """Keep what is owned until cancelled; then give all of it back."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                await self._keep()
        finally:
            self._group = None
            await self._abandon()

    async def take(self, number: int, lost: str = "") -> None:
        """Take a shard, if it is nobody's.

        Args:
            number: Which.
            lost: The fence of an owner that lost its connection to the broker: it is taken away from that one.

        Raises:
            Unavailable: Redis is away.
        """
        if self.closed or self._group is None or number in self._owned or number in self._taking:
            return
        self._taking.add(number)
        try:
            asked = time.monotonic()
            # Under a former fence of this worker's own, what it left undone then would not be done.
            owner = await self._leases.take(number, lost or self._former.get(number, ("", 0.0))[0])
            if owner is not None:
                self._own(number, owner, asked)
        finally:
            self._taking.discard(number)

    async def give(self, number: int) -> None:
        """Give a shard back in order, and say so: the next owner takes up what is left."""
        held = self._owned.get(number)
        if held is None:
            return
        await held.shard.drain(_HANDLED_SECONDS)
        if self._owned.get(number) is not held:
            return
        fence = held.shard.owner.fence
        await self._drop(number, held)
        self._former[number] = (fence, time.monotonic() + _SHY_SECONDS)
        try:
            await self._leases.release(number)
        except Unavailable as error:
            log.warning("a lease was not given back", extra={"shard": number, "reason": str(error)})
            return
        self._announce(number, fence)
        log.info("handed a shard over", extra={"shard": number})

    async def tidy(self) -> None:
        """Forget shards that ended by themselves."""
        for number, held in list(self._owned.items()):
            if held.task.done():
                await self._drop(number, held)

    async def confirm(self, shard: Shard) -> bool:
        """Whether a shard is still this worker's; as long as nobody can say, until its lease ends."""
        while shard.held:
            asked = time.monotonic()
            try:
                async with asyncio.timeout(shard.until - asked):
                    kept = await self._leases.renew(shard.number, shard.owner)
            except (Unavailable, TimeoutError) as error:
                log.warning("cannot renew a lease", extra={"shard": shard.number, "reason": str(error) or "no answer"})
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            if kept:
                shard.until = max(shard.until, self._end(asked))
            return kept and shard.held
        return False

    def shy(self, number: int, fence: str = "") -> bool:
        """Whether a shard was given away just now, under this fence if one is named, and is left to the others."""
        former, until = self._former.get(number, ("", 0.0))
        return fence in ("", former) and time.monotonic() < until

    async def _keep(self) -> None:
        """Renew what is owned, and drop at once what cannot be proved to be."""
        while True:
            async with asyncio.TaskGroup() as group:
                for number, held in list(self._owned.items()):
                    group.create_task(self._renew(number, held), name=f"renew {number}")
            await asyncio.sleep(self._leases.seconds / 3)

    async def _renew(self, number: int, held: _Held) -> None:
        if not held.task.done() and await self.confirm(held.shard):
            return
        if self._owned.get(number) is held:
            log.warning("lost a shard", extra={"shard": number})
            await self._drop(number, held)

    def _own(self, number: int, owner: Owner, asked: float) -> None:
        if self._group is None:
            return
        shard = self._make(number, owner)
        shard.until = self._end(asked)
        work = shard.run()
        task = self._group.create_task(isolate(f"shard {number}", work), name=f"shard {number}")
        # A task that is cancelled before it has begun never awaits its work.
        task.add_done_callback(lambda _: work.close())
        self._owned[number] = _Held(shard, task)
        log.debug("took a shard", extra={"shard": number})

    async def _drop(self, number: int, held: _Held) -> None:
        """End all that is done for a shard; nothing is said for it any more."""
        del self._owned[number]
        self._former[number] = (held.shard.owner.fence, 0.0)
        held.shard.until = 0.0
        held.task.cancel()
        await asyncio.wait([held.task], timeout=_END_SECONDS)

    async def _abandon(self) -> None:
        """What is still owned ended with the task group; give it back."""
        numbers = list(self._owned)
        self._owned.clear()
        try:
            async with asyncio.timeout(_END_SECONDS):
                for number in numbers:
                    await self._leases.release(number)
                await self._leases.retire()
        except (Unavailable, TimeoutError) as error:
            log.warning("left without giving the leases back", extra={"reason": str(error) or "no answer in time"})

    def _end(self, asked: float) -> float:
        return asked + self._leases.seconds * _SAFETY
