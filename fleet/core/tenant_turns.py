"""Turns of tenants: who has much to do comes as often as who has little."""

from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import Final, Protocol, TypeVar

ROUND_SECONDS: Final = 0.25
"""How long a round goes on when each tenant has had a turn."""


class Owned(Protocol):
    """What belongs to a tenant."""

    @property
    def tenant(self) -> int:
        """Whose it is."""

    @property
    def id(self) -> int:
        """Its number."""


T = TypeVar("T", bound=Owned)


class TenantTurns:
    """Orders work so that tenants take turns, also from one round to the next.

    Args:
        seconds: How long a round goes on when each tenant has had a turn.
    """

    def __init__(self, seconds: float = ROUND_SECONDS) -> None:
        self.seconds = seconds
        self.cut = False
        """Whether the last round ended before all work had its turn."""
        self._last: dict[int, int] = {}

    def round(self, works: Iterable[T], clock: Callable[[], float]) -> Iterator[T]:
        """Yield one work of each tenant, then the next one of each, until the time of the round is over.

        A tenant goes on behind its last work of the round before. Work counts as done when the next one is asked for.
        """
        lines: dict[int, list[T]] = {}
        for one in works:
            lines.setdefault(one.tenant, []).append(one)
        self._last = {tenant: last for tenant, last in self._last.items() if tenant in lines}
        for tenant, line in lines.items():
            last = self._last.get(tenant, 0)
            lines[tenant] = sorted((one for one in line if one.id > last), key=_number)
            lines[tenant] += sorted((one for one in line if one.id <= last), key=_number)
        end, self.cut = clock() + self.seconds, False
        for turn, row in enumerate(zip_longest(*lines.values())):
            for work in row:
                if work is not None:
                    self.cut = turn > 0 and clock() >= end
                    if self.cut:
                        return
                    yield work
                    self._last[work.tenant] = work.id


def _number(work: Owned) -> int:
    return work.id
