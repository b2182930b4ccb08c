"""Which shards this worker owns: leases taken, renewed, spread evenly and given back."""

import asyncio
import logging
import math
import random
from collections.abc import Callable

from fleet.errors import Unavailable
from fleet.store.leases import Leases
from fleet.store.owner import Owner
from fleet.tasks import isolate
from fleet.worker.shard import Shard

log = logging.getLogger(__name__)


class Shards:
    """The shards of one worker.

    Args:
        leases: This worker's leases.
        count: Number of shards in the fleet.
        renew_seconds: Pause between renewals, well below the leases' life time.
        make: Makes a shard for a lease.
    """

    def __init__(self, leases: Leases, count: int, renew_seconds: float, make: Callable[[int, Owner], Shard]) -> None:
        self._leases = leases
        self._count = count
        self._pause = renew_seconds
        self._make = make
        self._owned: dict[int, tuple[Shard, asyncio.Task[None]]] = {}

    @property
    def owned(self) -> dict[int, Shard]:
        """The shards owned now, by number."""
        return {number: shard for number, (shard, _) in self._owned.items()}

    async def run(self) -> None:
        """Own a fair share of the shards until cancelled; then give all of them back."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    await self._step(group)
                    await asyncio.sleep(self._pause)
        finally:
            await self._leave()

    async def _step(self, group: asyncio.TaskGroup) -> None:
        try:
            async with asyncio.timeout(self._pause * 2):
                workers = await self._leases.announce()
                await self._renew()
                await self._balance(group, math.ceil(self._count / max(workers, 1)))
        except (Unavailable, TimeoutError) as error:
            # The leases may have passed to others: whoever cannot prove ownership stops acting as owner.
            log.warning("cannot renew leases", extra={"reason": str(error) or "no answer in time"})
            await self._drop(list(self._owned))

    async def _renew(self) -> None:
        for number, (shard, task) in list(self._owned.items()):
            if task.done():
                del self._owned[number]
                await self._leases.release(number)
            elif await self._leases.take(number) != shard.owner:
                log.warning("lost a shard", extra={"shard": number})
                await self._drop([number])

    async def _balance(self, group: asyncio.TaskGroup, share: int) -> None:
        if len(self._owned) > share:
            number = next(iter(self._owned))
            await self._drop([number])
            await self._leases.release(number)
            log.info("handed a shard over", extra={"shard": number})
            return
        free = [number for number in range(self._count) if number not in self._owned]
        random.shuffle(free)
        for number in free:
            if len(self._owned) >= share:
                break
            owner = await self._leases.take(number)
            if owner is not None:
                self._own(group, number, owner)

    def _own(self, group: asyncio.TaskGroup, number: int, owner: Owner) -> None:
        shard = self._make(number, owner)
        task = group.create_task(isolate(f"shard {number}", shard.run()), name=f"shard {number}")
        self._owned[number] = (shard, task)
        log.debug("took a shard", extra={"shard": number})

    async def _drop(self, numbers: list[int]) -> None:
        tasks = [self._owned.pop(number)[1] for number in numbers]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self._pause)

    async def _leave(self) -> None:
        numbers = list(self._owned)
        await self._drop(numbers)
        try:
            async with asyncio.timeout(self._pause):
                for number in numbers:
                    await self._leases.release(number)
                await self._leases.retire()
        except (Unavailable, TimeoutError) as error:
            log.warning("left without giving the leases back", extra={"reason": str(error) or "no answer in time"})
