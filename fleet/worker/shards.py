"""Which shards this worker owns: leases taken, renewed, spread evenly and given back."""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from fleet.errors import FleetError, Unavailable
from fleet.store.leases import Leases
from fleet.store.owner import Owner
from fleet.tasks import isolate
from fleet.worker.balance import share, should_give
from fleet.worker.losses import Losses
from fleet.worker.shard import Shard

log = logging.getLogger(__name__)

STEP_SECONDS = 0.5
"""Pause between two looks at who owns how much; at most one shard is given away in each."""
_STEP_LIMIT = 5.0
_HANDLED_SECONDS = 1.0
"""Longest wait until the messages of a shard that is given away are handled."""
_END_SECONDS = 2.0
"""Longest wait until a shard's work has ended; its session says DISCONNECT within one."""
_SHY_SECONDS = 2.0
"""How long a shard that was given away is left to the others."""
_SAFETY = 0.95
"""Part of a lease's time after which it is not relied on: clocks differ."""


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    shard: Shard
    task: asyncio.Task[None]


class Shards:
    """The shards of one worker.

    Args:
        leases: This worker's leases.
        count: Number of shards in the fleet.
        make: Makes a shard for a lease.
        losses: Tells of shards without an owner, and whether this worker reaches the broker at all.
    """

    def __init__(self, leases: Leases, count: int, make: Callable[[int, Owner], Shard], losses: Losses) -> None:
        self._leases = leases
        self._count = count
        self._make = make
        self._losses = losses
        self._owned: dict[int, _Held] = {}
        self._former: dict[int, tuple[str, float]] = {}
        """Of shards that were owned: under which fence, and when on the monotonic clock they may be taken again."""
        self._taking: set[int] = set()
        self._group: asyncio.TaskGroup | None = None
        self._leaving = False
        self._calm_until = self._look_at = 0.0

    @property
    def owned(self) -> dict[int, Shard]:
        """The shards owned now, by number."""
        return {number: held.shard for number, held in self._owned.items()}

    async def run(self) -> None:
        """Own a fair share of the shards until cancelled; then give all of them back."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                group.create_task(self._keep(), name="leases")
                group.create_task(self._spread(), name="spread of shards")
        finally:
            self._group = None
            await self._abandon()

    async def leave(self, seconds: float) -> None:
        """Hand all shards over to the other workers: at once where no turn runs, else when it ends, or in `seconds`."""
        self._leaving = True
        try:
            await self._leases.retire()
        except Unavailable as error:
            log.warning("left without saying so", extra={"reason": str(error)})
        deadline = time.monotonic() + seconds
        while self._owned and self._group is not None:
            late = time.monotonic() >= deadline
            async with asyncio.TaskGroup() as group:
                for number, held in list(self._owned.items()):
                    if late or not held.shard.turns:
                        group.create_task(self._hand_over(number, held), name=f"hand over {number}")
            await asyncio.sleep(0.05)

    async def lost(self, number: int, fence: str, released: bool) -> None:
        """Take over a shard whose owner lost its connection or gave it back; those who own least come first."""
        if not released:
            # The dead still count, and nothing may be given to them.
            self._calm_until = time.monotonic() + self._leases.seconds
        if number in self._owned or self._shy(number):
            return
        await asyncio.sleep(0.01 * len(self._owned) + random.uniform(0, 0.05))
        try:
            await self._adopt(number, fence)
        except Unavailable as error:
            log.warning("lost shard not taken", extra={"shard": number, "reason": str(error)})

    async def confirm(self, shard: Shard) -> bool:
        """Whether a shard is still this worker's; as long as nobody can say, until its lease ends."""
        while shard.held:
            asked = time.monotonic()
            try:
                async with asyncio.timeout(shard.until - asked):
                    kept = await self._leases.renew(shard.number, shard.owner)
            except (Unavailable, TimeoutError) as error:
                log.warning("cannot renew a lease", extra={"shard": shard.number, "reason": str(error) or "no answer"})
                await asyncio.sleep(STEP_SECONDS)
                continue
            if kept:
                shard.until = max(shard.until, self._end(asked))
            return kept and shard.held
        return False

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

    async def _spread(self) -> None:
        await self._losses.met.wait()
        while True:
            try:
                async with asyncio.timeout(_STEP_LIMIT):
                    await self._step()
            except (FleetError, TimeoutError) as error:
                log.warning("shards not spread", extra={"reason": str(error) or "no answer in time"})
            await asyncio.sleep(STEP_SECONDS * random.uniform(0.8, 1.0))

    async def _step(self) -> None:
        if self._leaving:
            return
        now = time.monotonic()
        for number, held in list(self._owned.items()):
            away = held.shard.away_since
            if held.task.done():
                await self._drop(number, held)
            elif away is not None and now - away > 2 * self._leases.seconds:
                log.warning("a shard cannot be heard", extra={"shard": number})
                await self._hand_over(number, held)
        if not self._losses.connected:
            # Who cannot reach the broker takes nothing, and is not waited for by the others.
            await self._leases.retire()
            return
        peers = await self._leases.announce(len(self._owned))
        if now >= self._calm_until and should_give(self._leases.worker, len(self._owned), self._count, peers):
            number = min(self._owned, key=lambda one: self._owned[one].shard.turns)
            await self._hand_over(number, self._owned[number])
        elif len(self._owned) < share(self._count, peers) and now >= self._look_at:
            await self._fill(share(self._count, peers))

    async def _fill(self, most: int) -> None:
        self._look_at = time.monotonic() + self._leases.seconds / 3
        wanted = [number for number in range(self._count) if number not in self._owned and not self._shy(number)]
        free = await self._leases.free(wanted)
        random.shuffle(free)
        for number in free:
            if len(self._owned) >= most:
                break
            await self._adopt(number)

    async def _adopt(self, number: int, lost: str = "") -> None:
        if self._leaving or number in self._owned or number in self._taking:
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

    def _own(self, number: int, owner: Owner, asked: float) -> None:
        if self._group is None:
            return
        shard = self._make(number, owner)
        shard.until = self._end(asked)
        task = self._group.create_task(isolate(f"shard {number}", shard.run()), name=f"shard {number}")
        self._owned[number] = _Held(shard, task)
        log.debug("took a shard", extra={"shard": number})

    async def _hand_over(self, number: int, held: _Held) -> None:
        """Give a shard back in order, and say so: the next owner takes up what is left."""
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
        self._losses.tell(number, fence)
        log.info("handed a shard over", extra={"shard": number})

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

    def _shy(self, number: int) -> bool:
        return time.monotonic() < self._former.get(number, ("", 0.0))[1]

    def _end(self, asked: float) -> float:
        return asked + self._leases.seconds * _SAFETY
