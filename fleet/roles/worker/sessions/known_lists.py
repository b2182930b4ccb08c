"""Tool lists that devices have sent to this worker: devices with one firmware send the same pages, byte by byte."""

from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Final

MOST_LISTS: Final = 256
LARGEST_LISTS: Final = 2 * 1024 * 1024
"""Characters of all their stored forms."""

Pages = tuple[str, ...]
"""Digests of the pages of a list, in their order. They are too long for anybody to find a page for a digest."""


@dataclass(frozen=True, slots=True)
class KnownList:
    """What became of a list: its stored form, and how many tools it has."""

    stored: str
    tools: int


class KnownLists:
    """Lists without any fault, by their pages; those that were used least recently give way to others.

    Args:
        most: How many.
        largest: Characters of their stored forms together.
    """

    def __init__(self, most: int = MOST_LISTS, largest: int = LARGEST_LISTS) -> None:
        self._most = most
        self._largest = largest
        self._size = 0
        self._lists: OrderedDict[Pages, KnownList] = OrderedDict()
        self._beginnings: Counter[Pages] = Counter()

    def begins(self, pages: Pages) -> bool:
        """Whether a known list begins with these pages."""
        return pages in self._beginnings

    def find(self, pages: Pages) -> KnownList | None:
        """Return the list of exactly these pages."""
        found = self._lists.get(pages)
        if found is not None:
            self._lists.move_to_end(pages)
        return found

    def put(self, pages: Pages, known: KnownList) -> None:
        """Remember a list, for devices that send the same pages."""
        if pages in self._lists:
            return
        self._lists[pages] = known
        self._size += len(known.stored)
        self._beginnings.update(_beginnings(pages))
        while len(self._lists) > self._most or self._size > self._largest:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        pages, known = self._lists.popitem(last=False)
        self._size -= len(known.stored)
        for beginning in _beginnings(pages):
            self._beginnings[beginning] -= 1
            if not self._beginnings[beginning]:
                del self._beginnings[beginning]


def _beginnings(pages: Pages) -> list[Pages]:
    return [pages[: count + 1] for count in range(len(pages))]
