"""Places in queues that tenants share: nobody takes more than are free, so that a newcomer finds some at once."""

from collections import Counter
from collections.abc import Iterable, Mapping

Holder = tuple[int, int]
"""Who has a place: an execution, by its job and its device."""


class SharedPlaces:
    """Counts which tenant has how many places in which queue.

    A tenant may take one more place while it has fewer than are free. So each of `n` tenants that want all they can get
    has `most / (n + 1)`, and as many are free for the next one. Who wants less leaves the rest to the others: the
    shares are max-min fair, as if there were one tenant more.

    Args:
        most: Places of one queue.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._queues: dict[Holder, tuple[int, int]] = {}
        self._held = Counter[tuple[int, int]]()
        self._taken = Counter[int]()
        self._others: dict[int, int] = {}

    def room(self, tenant: int, queue: int) -> int:
        """Return how many places a tenant may take in a queue, one after the other."""
        free = self.most - self._taken[queue] - self._others.get(queue, 0)
        return max(0, (free - self._held[tenant, queue] + 1) // 2)

    def admit(self, holder: Holder, tenant: int, queue: int) -> bool:
        """Let a holder take a place, if its tenant may have one more; return whether it has one now."""
        if not self.room(tenant, queue):
            return False
        self.take(holder, tenant, queue)
        return True

    def take(self, holder: Holder, tenant: int, queue: int) -> None:
        """Note that a holder has a place."""
        self.leave(holder)
        self._queues[holder] = tenant, queue
        self._held[tenant, queue] += 1
        self._taken[queue] += 1

    def leave(self, holder: Holder) -> None:
        """Note that a holder has no place any more."""
        if holder in self._queues:
            tenant, queue = self._queues.pop(holder)
            self._held[tenant, queue] -= 1
            self._taken[queue] -= 1

    def settle(self, holders: Iterable[tuple[Holder, int, int]]) -> None:
        """Take over what is known from elsewhere: each holder, with its tenant and queue."""
        self._queues, self._held, self._taken = {}, Counter(), Counter()
        for holder, tenant, queue in holders:
            self.take(holder, tenant, queue)

    def measure(self, lengths: Mapping[int, int]) -> None:
        """Note how long the queues are; what no holder explains belongs to others, and leaves less to all."""
        self._others = {queue: max(0, length - self._taken[queue]) for queue, length in lengths.items()}
