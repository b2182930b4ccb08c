"""Decide how shards are spread over workers, without IO."""

import math
from collections.abc import Sequence

from fleet.adapters.redis.shards.leases import LivingWorker

FRESH_SECONDS = 1.5
"""A worker whose last announcement is older may be dead: it counts as a peer until that expires, but gets no shard."""


def share(count: int, peers: Sequence[LivingWorker]) -> int:
    """Return how many shards a worker may take."""
    return math.ceil(count / max(len(peers), 1))


def should_hand_over(me: str, owned: int, count: int, peers: Sequence[LivingWorker]) -> bool:
    """Return whether this worker should now give one shard to another.

    Another worker must own at least two fewer, so that no shard moves to and fro. If nobody owns more than a share,
    only one of the workers that own most gives, so that a new worker does not get too many at once.
    """
    others = [peer for peer in peers if peer.worker != me and peer.age <= FRESH_SECONDS]
    if not others or owned - min(peer.shards for peer in others) < 2:
        return False
    if owned > math.ceil(count / (len(others) + 1)):
        return True
    return all((peer.shards, me) <= (owned, peer.worker) for peer in others)
