"""What an edge writes down of its devices, so that an operator can find out later why one of them was silent.

Noting costs a dictionary entry; all notes are written together, once a second and only when there are any.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime

from fleet.adapters.redis.devices.traces import EdgeNote
from fleet.ground.errors import Unavailable
from fleet.ground.tasks import Backoff, keep_running

PAUSE_SECONDS = 1.0
MOST = 5_000
"""Devices with notes that wait to be written; of others nothing is noted until there is room."""

Notes = Mapping[str, Mapping[str, str]]
Write = Callable[[Notes], Awaitable[None]]


class TraceQueue:
    """The notes that wait to be written: the latest of each kind of each device."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, str]] = {}

    def note(self, device: str, what: EdgeNote, text: str = "") -> None:
        """Note that something happened now."""
        notes = self._waiting.get(device)
        if notes is None:
            if len(self._waiting) >= MOST:
                return
            notes = self._waiting[device] = {}
        notes[what] = f"{int(datetime.now(UTC).timestamp())} {text}".rstrip()

    async def run(self, write: Write) -> None:
        """Write until cancelled, and what is left then. Without Redis notes wait, the newest of each kind."""
        backoff = Backoff(limit=PAUSE_SECONDS)
        try:
            await keep_running("traces", lambda: self._repeat(write, backoff), backoff)
        finally:
            await self._finish(write)

    async def _repeat(self, write: Write, backoff: Backoff) -> None:
        while True:
            await asyncio.sleep(PAUSE_SECONDS)
            await self._write(write)
            backoff.reset()

    async def _write(self, write: Write) -> None:
        notes, self._waiting = self._waiting, {}
        written = not notes
        try:
            if notes:
                await write(notes)
                written = True
        finally:
            if not written:
                self._restore(notes)

    def _restore(self, notes: dict[str, dict[str, str]]) -> None:
        for device, newer in self._waiting.items():
            notes.setdefault(device, {}).update(newer)
        self._waiting = notes

    async def _finish(self, write: Write) -> None:
        try:
            async with asyncio.timeout(PAUSE_SECONDS):
                await self._write(write)
        except (Unavailable, TimeoutError):
            return  # only an operator would have read it
