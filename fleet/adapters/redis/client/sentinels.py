"""The Sentinels that know the primary: a search for it loses none of them."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from redis.asyncio import Redis, Sentinel


class Sentinels(Sentinel):
    """redis-py's client of Sentinels, which keeps all of them whatever happens at the same time.

    redis-py moves the Sentinel that knew the primary to the front of its list. Of two searches at a time, the second
    moves one over another: the lost one is never asked again, and its connections are never closed.

    Args:
        hosts: Of each Sentinel, its host and port.
        options: Of the connections to them.
    """

    def __init__(self, hosts: Sequence[tuple[str, int]], options: Mapping[str, Any]) -> None:
        super().__init__(list(hosts), sentinel_kwargs=options)  # type: ignore[no-untyped-call]
        self._all: tuple[Redis, ...] = tuple(self.sentinels)

    async def discover_master(self, service_name: str) -> tuple[str, int]:
        """Return the primary's host and port.

        Raises:
            MasterNotFoundError: No Sentinel names one.
        """
        try:
            return cast("tuple[str, int]", await super().discover_master(service_name))
        finally:
            first = self.sentinels[0]
            # A new list: another search may still walk through the former one.
            self.sentinels = [first, *(sentinel for sentinel in self._all if sentinel is not first)]
