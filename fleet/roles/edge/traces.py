"""Notes about devices for `fleet doctor --device`, which explains why a device was silent.

A note costs a dictionary entry. All notes are written together, once a second, if there are any.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime

from fleet.adapters.redis.devices.traces import EdgeNote
from fleet.ground.errors import Unavailable
from fleet.ground.tasks import Backoff, keep_running

PAUSE_SECONDS = 1.0
MOST = 5_000
"""Devices whose notes wait; notes of further devices are dropped."""

Notes = Mapping[str, Mapping[str, str]]
Write = Callable[[Notes], Awaitable[None]]


class TraceQueue:
    """The notes that wait to be written: for each device the latest of each kind."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, str]] = {}

    def note(self, device: str, what: EdgeNote, text: str = "") -> None:
        """Note an event with the current time."""
        notes = self._waiting.get(device)
        if notes is None:
            if len(self._waiting) >= MOST:
                return
            notes = self._waiting[device] = {}
        now = int(datetime.now(UTC).timestamp())
        notes[what] = f"{now} {text}" if text else str(now)

    async def run(self, write: Write) -> None:
        """Write until cancelled, then write what is left. While Redis is away the newest notes of each kind wait."""
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
            return  # notes are diagnostics: losing them harms nothing
