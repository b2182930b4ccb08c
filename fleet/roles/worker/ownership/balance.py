"""Spreading shards over workers, decided without IO."""

import math
from collections.abc import Sequence

from fleet.adapters.redis.shards.leases import LivingWorker

FRESH_SECONDS = 1.5
"""A worker that was not heard of for longer may be dead: it counts until its time is up, but is given nothing."""


def share(count: int, peers: Sequence[LivingWorker]) -> int:
    """Return how many of the shards a worker may take by itself."""
    return math.ceil(count / max(len(peers), 1))


def should_give(me: str, owned: int, count: int, peers: Sequence[LivingWorker]) -> bool:
    """Whether this worker should now give one shard to another.

    Only while another has at least two fewer, so that nothing is moved to and fro; and where everybody has no more than
    a share, only one of those that have most gives, so that a newcomer is not given too many at once.
    """
    others = [peer for peer in peers if peer.worker != me and peer.age <= FRESH_SECONDS]
    if not others or owned - min(peer.shards for peer in others) < 2:
        return False
    if owned > math.ceil(count / (len(others) + 1)):
        return True
    return all((peer.shards, me) <= (owned, peer.worker) for peer in others)
