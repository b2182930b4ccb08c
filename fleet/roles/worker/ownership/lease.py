"""The lease of a shard, as its holder may believe in it."""

import time
from collections.abc import Callable
from typing import Final, Protocol

from fleet.adapters.redis.shards.owner import Owner

Clock = Callable[[], float]
"""Returns seconds that only rise.

Ask the system: the loop's clock may stand still while a callback runs, and the lease would seem to last longer.
"""

SAFETY: Final = 0.95
"""Part of a lease's time for which it counts as held: the clocks of Redis and this process differ in rate."""


class LeaseTable(Protocol):
    """The leases in Redis, as one worker sees them (`fleet.adapters.redis.shards.leases.Leases`)."""

    seconds: float
    """A lease ends this long after its last renewal."""

    async def take(self, shard: int, lost: str) -> Owner | None:
        """Take or keep a lease; None if another worker has it, and not under the fence `lost`."""

    async def renew(self, shard: int, owner: Owner) -> bool:
        """Return False if the lease ended or passed to another worker."""

    async def release(self, shard: int) -> None:
        """Release a lease, if this worker has it."""

    async def retire(self) -> None:
        """Announce that this worker stops."""


class Lease:
    """The lease under which a worker owns a shard.

    Args:
        owner: All writes for the shard carry its fence.
        asked: When the lease was requested: Redis counts from a later time.
        seconds: Duration of the lease.
        clock: The time.
    """

    def __init__(self, owner: Owner, asked: float, seconds: float, clock: Clock = time.monotonic) -> None:
        self.owner = owner
        self.clock = clock
        self._seconds = seconds * SAFETY
        self._until = asked + self._seconds
        self._ended = False

    @property
    def left(self) -> float:
        """Seconds for which the lease is surely held."""
        return 0.0 if self._ended else self._until - self.clock()

    @property
    def held(self) -> bool:
        """Whether no other worker can have the lease."""
        return not self._ended and self._until > self.clock()

    def extend(self, asked: float) -> None:
        """Take note of a renewal that was requested at this time; it does not undo `end`."""
        self._until = max(self._until, asked + self._seconds)

    def end(self) -> None:
        """Give the lease up."""
        self._ended = True
