"""Gives stored events to the feed of this process: those that it collected itself, and those of other processes."""

import asyncio
from collections.abc import Sequence

from fleet.adapters.sql.event_rows import EventLog, StoredEvent
from fleet.roles.control.following.feed import EventFeed

POLL_SECONDS = 0.25
"""From one look for events that another process stored to the next."""
_AT_ONCE = 2_000


class EventTail:
    """Follows the stored events in the order of their ids, and gives every one to the feed.

    Args:
        log: The stored events.
        feed: Of this process.
    """

    def __init__(self, log: EventLog, feed: EventFeed) -> None:
        self._log, self._feed = log, feed
        self._offered: list[StoredEvent] = []
        self._woken = asyncio.Event()

    def offer(self, events: Sequence[StoredEvent]) -> None:
        """Take events that this process has just stored; what does not fit is read from the database later."""
        if events and len(self._offered) < _AT_ONCE:
            self._offered += events
        self._woken.set()

    async def run(self) -> None:
        """Follow until cancelled.

        Raises:
            Unavailable: The database does not answer; call it again, nothing is left out.
        """
        if not self._feed.ready.is_set():
            self._feed.last = (await self._log.ends())[1]
            self._feed.ready.set()
        while True:
            await self.step()
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await self._woken.wait()
            except TimeoutError:
                pass

    async def step(self) -> None:
        """Give all that is stored now."""
        self._woken.clear()
        while True:
            offered, self._offered = self._offered, []
            following = [one for one in offered if one.id > self._feed.last]
            if not following or following[0].id != self._feed.last + 1:
                following = await self._read()
            await self._feed.give(following)
            if len(following) < _AT_ONCE and not self._offered:
                return

    async def _read(self) -> list[StoredEvent]:
        if not self._feed.count:
            newest = (await self._log.ends())[1]
            if not self._feed.count:
                # No client follows, and none joined during the read: skip the events stored so far.
                self._feed.last = newest
                return []
        return await self._log.after(self._feed.last, _AT_ONCE)
