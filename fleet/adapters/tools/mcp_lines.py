"""What MCP servers write, in pieces of any size: bounded in length, and in how much of it is taken at a time."""

import asyncio
import re
from dataclasses import dataclass

LARGEST_MESSAGE = 1024 * 1024
"""Bytes of a message that is read."""
BURST = 4 * LARGEST_MESSAGE
PER_SECOND = LARGEST_MESSAGE
MESSAGE_COST = 1024
"""A message counts as so many bytes at least: reading one costs time, however short it is."""

_HEAD = 256
_ID = re.compile(rb'^\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*,')


@dataclass(frozen=True, slots=True)
class TooLong:
    """A line that was thrown away; `answers` is the id of the request that it begins to answer, if it says so."""

    answers: int | None


class Lines:
    """Cuts a stream of bytes into lines."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._skipping = False

    def feed(self, piece: bytes) -> list[bytes | TooLong]:
        """Return the lines that end in the next piece, without those that are blank."""
        found: list[bytes | TooLong] = []
        *ended, rest = piece.split(b"\n")
        for end in ended:
            found += self._end(end)
        self._add(rest, found)
        return found

    def _end(self, end: bytes) -> list[bytes | TooLong]:
        found: list[bytes | TooLong] = []
        self._add(end, found)
        line, skipped = bytes(self._rest).strip(), self._skipping
        self._rest.clear()
        self._skipping = False
        return found if skipped or not line else [*found, line]

    def _add(self, part: bytes, found: list[bytes | TooLong]) -> None:
        if self._skipping:
            return
        self._rest += part
        if len(self._rest) > LARGEST_MESSAGE:
            head = _ID.match(self._rest[:_HEAD])
            found.append(TooLong(int(head[1]) if head else None))
            self._rest.clear()
            self._skipping = True


class ByteRate:
    """Takes a server's bytes no faster than so many a second, after so many at once: a flood delays its own server."""

    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self._due = 0.0
        """When everything that was taken is made up for."""

    async def take(self, cost: int) -> None:
        """Return when so many bytes may be handled."""
        now = self._clock()
        self._due = max(self._due, now) + cost / PER_SECOND
        late = self._due - now - BURST / PER_SECOND
        if late > 0:
            await asyncio.sleep(late)
