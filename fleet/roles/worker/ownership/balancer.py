"""Spread the shards evenly over the workers, take over those of dead workers, and hand all over at the end."""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from fleet.adapters.redis.shards.leases import LivingWorker
from fleet.ground.errors import FleetError, Unavailable
from fleet.roles.worker.ownership.balance import FRESH_SECONDS, share, should_hand_over
from fleet.roles.worker.ownership.lease import Clock, Lease, LeaseTable
from fleet.roles.worker.ownership.lease_holder import LeaseHolder
from fleet.roles.worker.ownership.shard import Shard

log = logging.getLogger(__name__)

STEP_SECONDS = 0.5
"""Pause between two steps; in each at most one shard is given away."""
_SPREAD_SECONDS = 3.0
"""Longest time until a new worker has its share: with many shards the pauses are shorter."""
_STEP_LIMIT = 5.0
_NO_MOVE_SECONDS = FRESH_SECONDS + STEP_SECONDS
"""Time after a loss in which no shard is given away: the announcement of the dead worker still counts."""
_STAGGER_SECONDS = 0.02
"""Delay before a worker takes a lost shard, for each shard that it owns more than the others."""


class WorkerTable(LeaseTable, Protocol):
    """The leases and the workers in Redis (`fleet.adapters.redis.shards.leases.Leases`)."""

    worker: str
    """This worker's id."""

    async def free(self, shards: Iterable[int]) -> list[int]:
        """Return those of the shards that have no owner."""

    async def announce(self, shards: int = 0) -> list[LivingWorker]:
        """Announce this worker and its number of shards; return all live workers."""


class LossReports(Protocol):
    """Losses of shards, and the connection to the broker over which they are reported (`OwnerLossListener`)."""

    reached: asyncio.Event
    """Set after the first connection."""

    @property
    def connected(self) -> bool:
        """Whether this worker is connected."""

    def announce(self, shard: int, fence: str) -> None:
        """Announce that a shard was released."""


class ShardBalancer:
    """The shards of one worker.

    Args:
        leases: This worker's leases.
        count: Number of shards in the fleet.
        make: Makes a shard for a lease.
        losses: Reports shards without an owner, and whether this worker is connected to the broker.
        clock: The time of this worker's leases.
    """

    def __init__(
        self,
        leases: WorkerTable,
        count: int,
        make: Callable[[int, Lease], Shard],
        losses: LossReports,
        clock: Clock = time.monotonic,
    ) -> None:
        self._leases = leases
        self._count = count
        self._losses = losses
        self._holder = LeaseHolder(leases, make, losses.announce, clock)
        self._clock = clock
        self._no_move_until = self._fill_at = 0.0
        self.spare = False
        """Whether there are more workers than shards, so that a healthy worker may own none."""
        self._least = 0
        """Lowest number of shards that another worker owned at the last step."""

    @property
    def owned(self) -> dict[int, Shard]:
        """The shards owned now, by number."""
        return self._holder.owned

    async def run(self) -> None:
        """Own a fair share of the shards until cancelled; then release all of them."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._holder.run(), name="leases")
            group.create_task(self._spread(), name="spread of shards")

    async def hand_over(self, seconds: float) -> None:
        """Hand all shards over to the other workers, each when no turn runs in it, at the latest after `seconds`."""
        self._holder.closed = True
        try:
            await self._leases.retire()
        except Unavailable as error:
            log.warning("worker not retired", extra={"reason": str(error)})
        deadline = self._clock() + seconds
        while self._holder.count:
            late = self._clock() >= deadline
            async with asyncio.TaskGroup() as group:
                for number, shard in self.owned.items():
                    if late or not shard.turns:
                        group.create_task(self._holder.hand_over(number), name=f"hand over {number}")
            await asyncio.sleep(0.05)

    async def take_lost(self, number: int, fence: str, released: bool) -> None:
        """Take over a shard whose owner lost its connection or released it; workers that own fewer come first."""
        if not released:
            self._no_move_until = self._clock() + _NO_MOVE_SECONDS
        if number in self.owned or (released and self._holder.backs_off(number, fence)):
            return
        more = max(0, self._holder.count - self._least)
        await asyncio.sleep(_STAGGER_SECONDS * (more + random.random()))
        try:
            await self._holder.take(number, fence)
        except Unavailable as error:
            log.warning("lost shard not taken", extra={"shard": number, "reason": str(error)})

    async def confirm(self, shard: Shard) -> bool:
        """Renew a shard's lease; return whether it is still held. While Redis is away it is, until the lease ends."""
        return await self._holder.confirm(shard)

    async def _spread(self) -> None:
        await self._losses.reached.wait()
        while True:
            pause = STEP_SECONDS
            try:
                async with asyncio.timeout(_STEP_LIMIT):
                    pause = await self._step()
            except (FleetError, TimeoutError) as error:
                log.warning("shards not spread", extra={"reason": str(error) or "no answer in time"})
            await asyncio.sleep(pause * random.uniform(0.8, 1.0))

    async def _step(self) -> float:
        """Take or give shards; return the pause until the next step."""
        if self._holder.closed:
            return STEP_SECONDS
        await self._holder.drop_ended()
        await self._hand_over_disconnected()
        if not self._losses.connected:
            # A worker without a connection takes no shards; the others must not count it as a peer.
            await self._leases.retire()
            return STEP_SECONDS
        peers = await self._leases.announce(len(self.owned))
        return await self._even_out(peers)

    async def _hand_over_disconnected(self) -> None:
        """Give away shards that have been disconnected for long: another worker may be able to connect."""
        for number, shard in self.owned.items():
            if (
                shard.disconnected_since is not None
                and self._clock() - shard.disconnected_since > 2 * self._leases.seconds
            ):
                log.warning("shard disconnected for too long", extra={"shard": number})
                await self._holder.hand_over(number)

    async def _even_out(self, peers: list[LivingWorker]) -> float:
        me, owned, most = self._leases.worker, self.owned, share(self._count, peers)
        self._least = min((peer.shards for peer in peers if peer.worker != me), default=self._count)
        self.spare = len(peers) > self._count
        now = self._clock()
        if now >= self._no_move_until and should_hand_over(me, len(owned), self._count, peers):
            await self._holder.hand_over(min(owned, key=lambda number: owned[number].turns))
            if len(owned) - 1 > most:
                return min(STEP_SECONDS, _SPREAD_SECONDS / most)
        elif len(owned) < most and now >= self._fill_at:
            self._fill_at = now + self._leases.seconds / 3
            await self._fill(most)
        return STEP_SECONDS

    async def _fill(self, most: int) -> None:
        holder = self._holder
        wanted = [number for number in range(self._count) if number not in self.owned and not holder.backs_off(number)]
        free = await self._leases.free(wanted)
        random.shuffle(free)
        for number in free:
            if len(self.owned) >= most:
                break
            await holder.take(number)
