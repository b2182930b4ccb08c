"""One budget in bytes for all tool lists that a worker is reading from devices."""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Final

from fleet.roles.worker.sessions.known_lists import KnownLists
from fleet.wire.mcp import LARGEST_LIST, LARGEST_PAGE, ToolSpec

LARGEST_LISTS = 8 * 1024 * 1024
"""Bytes of all lists that a worker reads at the same time: 128 lists of the largest size, or 2,000 of a usual 4 KB."""
MOST_TOOLS = 256
LIST_TOO_LONG, PAGE_TOO_LONG = "too long", "page too long"
_READING: Final = b"1"
"""Change it when `parse_page` reads a page in another way than before: then no stored list is as its pages."""
_DIGEST_BYTES: Final = 16
_STORED_DIGITS: Final = 16
"""Of the digests that a device's record keeps: they are compared with pages of the same device only."""
_ENTRY = 200
"""Bytes of memory for a tool in addition to its name and its JSON."""


class GrowingList:
    """The tools of one device that were read so far, as JSON: objects would take twenty times the memory.

    Args:
        stored: Digests of the pages of the stored list.
        known: Lists of other devices.
    """

    def __init__(self, stored: str, known: KnownLists) -> None:
        self.tools: dict[str, bytes] = {}
        self.skipped: list[bytes] = []
        """Pages with which the stored list or a known one begins, as the device sent them; they are not parsed."""
        self.digests: tuple[str, ...] = ()
        """Of the pages that were read."""
        self.flawless = True
        """Whether nothing was left out."""
        self._stored = stored.split()
        self._known = known
        self._length = 0
        self.size = 0
        """Bytes of the budget that it uses."""
        self.refused = False
        """Whether it was dropped because all lists together exceeded the budget."""

    def __len__(self) -> int:
        return len(self.tools)

    @property
    def pages(self) -> str:
        """Digests of the pages that were read, as a device's record keeps them."""
        return " ".join(digest[:_STORED_DIGITS] for digest in self.digests)

    @property
    def unchanged(self) -> bool:
        """Whether the pages that were read are those of the stored list."""
        return bool(self._stored) and self.pages.split() == self._stored

    def skip(self, text: bytes) -> bool:
        """Note a page; return whether it need not be parsed: a stored list begins with the pages so far."""
        number = len(self.digests)
        self.digests += (blake2b(text, digest_size=_DIGEST_BYTES, person=_READING).hexdigest(),)
        if self.tools or len(self.skipped) < number:
            return False
        # Spaces make pages long, but not the tools in them: of a list that is parsed they take no room.
        if self.size + len(text) > LARGEST_LIST:
            return False
        if self.pages.split() != self._stored[: number + 1] and not self._known.begins(self.digests):
            return False
        self.skipped.append(text)
        self.size += len(text)
        return True

    def document(self) -> bytes:
        """Return the tools as one JSON array."""
        return b"[" + b",".join(self.tools.values()) + b"]"

    def add(self, tools: Iterable[ToolSpec]) -> str:
        """Add the tools of a page; of two tools with one name the last is kept.

        Returns:
            Why tools were left out, so that the list ends here; empty if all were added.
        """
        page = 0
        for tool in tools:
            text = tool.model_dump_json(exclude_defaults=True).encode()
            page += len(text)
            old = self.tools.get(tool.name)
            length = self._length + len(text) - len(old or b"")
            if page > LARGEST_PAGE:
                return PAGE_TOO_LONG
            if length > LARGEST_LIST or (old is None and len(self.tools) >= MOST_TOOLS):
                return LIST_TOO_LONG
            self.size += length - self._length + (0 if old is not None else len(tool.name) + _ENTRY)
            self.tools[tool.name], self._length = text, length
        return ""


class ListBudget:
    """Shares the budget among the lists.

    If the budget is exceeded, the list that was begun first is dropped. A device sends its list within two seconds, so
    the oldest list belongs to a slow device. If the largest were dropped, an attacker with many small lists could keep
    out every device with a longer one.

    Args:
        counts: Count dropped lists.
        limit: The budget in bytes.
    """

    def __init__(self, counts: Counter[str], limit: int = LARGEST_LISTS) -> None:
        self.limit = limit
        self.used = 0
        """Bytes of all lists."""
        self._counts = counts
        self._open: OrderedDict[GrowingList, None] = OrderedDict()

    @contextmanager
    def begin(self, stored: str = "", known: KnownLists | None = None) -> Iterator[GrowingList]:
        """Return an empty list that counts during the block; for the arguments see `GrowingList`."""
        growing = GrowingList(stored, known or KnownLists())
        self._open[growing] = None
        try:
            yield growing
        finally:
            if self._open.pop(growing, self) is None:
                self.used -= growing.size

    def add(self, growing: GrowingList, tools: Iterable[ToolSpec]) -> str:
        """Add the tools of a page to a list; this may drop it, or other lists.

        Returns:
            As `GrowingList.add`.
        """
        if growing.refused:
            return ""
        before = growing.size
        fault = growing.add(tools)
        self._count(growing.size - before)
        return fault

    def skip(self, growing: GrowingList, text: bytes) -> bool:
        """Note a page, as `GrowingList.skip` does; this may drop the list, or others."""
        if growing.refused:  # It is not in the budget any more, so nothing would give its room back.
            return False
        before = growing.size
        skipped = growing.skip(text)
        self._count(growing.size - before)
        return skipped

    def _count(self, size: int) -> None:
        self.used += size
        while self._open and self._is_over():
            self._refuse(next(iter(self._open)))

    def _is_over(self) -> bool:
        return self.used > self.limit

    def _refuse(self, oldest: GrowingList) -> None:
        del self._open[oldest]
        self.used -= oldest.size
        oldest.tools.clear()
        oldest.skipped.clear()
        oldest.refused = True
        self._counts["tools: too many lists"] += 1
