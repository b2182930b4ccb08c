"""Which shards this worker owns: spread evenly, taken over from the dead, handed over at the end."""

import asyncio
import logging
import random
import time
from collections.abc import Callable

from fleet.adapters.redis.shards.leases import Leases, LivingWorker
from fleet.adapters.redis.shards.owner import Owner
from fleet.ground.errors import FleetError, Unavailable
from fleet.roles.worker.ownership.balance import FRESH_SECONDS, share, should_give
from fleet.roles.worker.ownership.lease_holder import LeaseHolder
from fleet.roles.worker.ownership.owner_loss import OwnerLossListener
from fleet.roles.worker.ownership.shard import Shard

log = logging.getLogger(__name__)

STEP_SECONDS = 0.5
"""Pause between two looks at who owns how much; at most one shard is given away in each."""
_SPREAD_SECONDS = 3.0
"""How long a newcomer may wait for its share: with many shards the pauses are shorter."""
_STEP_LIMIT = 5.0
_CALM_SECONDS = FRESH_SECONDS + STEP_SECONDS
"""After a loss nothing is given away: until then the dead look as if they lived."""
_DEFERENCE_SECONDS = 0.02
"""How much longer a worker leaves a lost shard to the others for each shard that it owns more."""


class ShardBalancer:
    """The shards of one worker.

    Args:
        leases: This worker's leases.
        count: Number of shards in the fleet.
        make: Makes a shard for a lease.
        losses: Tells of shards without an owner, and whether this worker reaches the broker at all.
    """

    def __init__(
        self, leases: Leases, count: int, make: Callable[[int, Owner], Shard], losses: OwnerLossListener
    ) -> None:
        self._leases = leases
        self._count = count
        self._losses = losses
        self._holder = LeaseHolder(leases, make, losses.announce)
        self._calm_until = self._look_at = 0.0
        self.spare = False
        """Whether there are more workers than shards, so that one may well own none."""
        self._least = 0
        """How many shards the one of the others owned last that owned least."""

    @property
    def owned(self) -> dict[int, Shard]:
        """The shards owned now, by number."""
        return self._holder.owned

    async def run(self) -> None:
        """Own a fair share of the shards until cancelled; then give all of them back."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._holder.run(), name="leases")
            group.create_task(self._spread(), name="spread of shards")

    async def leave(self, seconds: float) -> None:
        """Hand all shards over to the other workers: at once where no turn runs, else when it ends, or in `seconds`."""
        self._holder.closed = True
        try:
            await self._leases.retire()
        except Unavailable as error:
            log.warning("left without saying so", extra={"reason": str(error)})
        deadline = time.monotonic() + seconds
        while self._holder.count:
            late = time.monotonic() >= deadline
            async with asyncio.TaskGroup() as group:
                for number, shard in self.owned.items():
                    if late or not shard.turns:
                        group.create_task(self._holder.give(number), name=f"hand over {number}")
            await asyncio.sleep(0.05)

    async def lost(self, number: int, fence: str, released: bool) -> None:
        """Take over a shard whose owner lost its connection or gave it back; those who own least come first."""
        if not released:
            self._calm_until = time.monotonic() + _CALM_SECONDS
        if number in self.owned or (released and self._holder.shy(number, fence)):
            return
        more = max(0, self._holder.count - self._least)
        await asyncio.sleep(_DEFERENCE_SECONDS * (more + random.random()))
        try:
            await self._holder.take(number, fence)
        except Unavailable as error:
            log.warning("lost shard not taken", extra={"shard": number, "reason": str(error)})

    async def confirm(self, shard: Shard) -> bool:
        """Whether a shard is still this worker's; as long as nobody can say, until its lease ends."""
        return await self._holder.confirm(shard)

    async def _spread(self) -> None:
        await self._losses.met.wait()
        while True:
            pause = STEP_SECONDS
            try:
                async with asyncio.timeout(_STEP_LIMIT):
                    pause = await self._step()
            except (FleetError, TimeoutError) as error:
                log.warning("shards not spread", extra={"reason": str(error) or "no answer in time"})
            await asyncio.sleep(pause * random.uniform(0.8, 1.0))

    async def _step(self) -> float:
        """Take or give what is due; return the pause until the next step."""
        if self._holder.closed:
            return STEP_SECONDS
        await self._holder.tidy()
        await self._give_the_deaf()
        if not self._losses.connected:
            # Who cannot reach the broker takes nothing, and is not waited for by the others.
            await self._leases.retire()
            return STEP_SECONDS
        peers = await self._leases.announce(len(self.owned))
        return await self._even_out(peers)

    async def _give_the_deaf(self) -> None:
        """Give away what has not been connected for so long that another worker may have more luck."""
        for number, shard in self.owned.items():
            if shard.away_since is not None and time.monotonic() - shard.away_since > 2 * self._leases.seconds:
                log.warning("a shard cannot be heard", extra={"shard": number})
                await self._holder.give(number)

    async def _even_out(self, peers: list[LivingWorker]) -> float:
        me, owned, most = self._leases.worker, self.owned, share(self._count, peers)
        self._least = min((peer.shards for peer in peers if peer.worker != me), default=self._count)
        self.spare = len(peers) > self._count
        now = time.monotonic()
        if now >= self._calm_until and should_give(me, len(owned), self._count, peers):
            await self._holder.give(min(owned, key=lambda number: owned[number].turns))
            if len(owned) - 1 > most:
                return min(STEP_SECONDS, _SPREAD_SECONDS / most)
        elif len(owned) < most and now >= self._look_at:
            self._look_at = now + self._leases.seconds / 3
            await self._fill(most)
        return STEP_SECONDS

    async def _fill(self, most: int) -> None:
        holdings = self._holder
        wanted = [number for number in range(self._count) if number not in self.owned and not holdings.shy(number)]
        free = await self._leases.free(wanted)
        random.shuffle(free)
        for number in free:
            if len(self.owned) >= most:
                break
            await holdings.take(number)
