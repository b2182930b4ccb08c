"""Lines from the output of MCP servers, with bounds on their length and on the rate of reading."""

import asyncio
import re
from dataclasses import dataclass

LARGEST_MESSAGE = 1024 * 1024
"""Bytes of the longest message."""
BURST = 4 * LARGEST_MESSAGE
PER_SECOND = LARGEST_MESSAGE
MESSAGE_COST = 1024
"""Bytes that a message counts at least, because a short message costs time too."""

_HEAD = 256
_ID = re.compile(rb'^\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*,')


@dataclass(frozen=True, slots=True)
class OversizedLine:
    """A line that was dropped because it is too long; `answers` is the id of the request that it answers, if known."""

    answers: int | None


class LineSplitter:
    """Cuts a stream of bytes into lines; keeps at most `LARGEST_MESSAGE` bytes."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._skipping = False

    def feed(self, piece: bytes) -> list[bytes | OversizedLine]:
        """Return the lines that end in the next piece, without blank ones."""
        found: list[bytes | OversizedLine] = []
        *ended, rest = piece.split(b"\n")
        for end in ended:
            found += self._end(end)
        self._add(rest, found)
        return found

    def _end(self, end: bytes) -> list[bytes | OversizedLine]:
        found: list[bytes | OversizedLine] = []
        self._add(end, found)
        line, skipped = bytes(self._rest).strip(), self._skipping
        self._rest.clear()
        self._skipping = False
        return found if skipped or not line else [*found, line]

    def _add(self, part: bytes, found: list[bytes | OversizedLine]) -> None:
        if self._skipping:
            return
        self._rest += part
        if len(self._rest) > LARGEST_MESSAGE:
            head = _ID.match(self._rest[:_HEAD])
            found.append(OversizedLine(int(head[1]) if head else None))
            self._rest.clear()
            self._skipping = True


class ByteRate:
    """Limits the rate of reading from one server: `BURST` bytes at once, then `PER_SECOND`.

    A server that writes too fast is read more slowly, so it delays only itself.
    """

    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self._due = 0.0
        """The time until which the taken bytes use up `PER_SECOND`."""

    async def take(self, cost: int) -> None:
        """Wait until `cost` bytes may be processed."""
        now = self._clock()
        self._due = max(self._due, now) + cost / PER_SECOND
        late = self._due - now - BURST / PER_SECOND
        if late > 0:
            await asyncio.sleep(late)
