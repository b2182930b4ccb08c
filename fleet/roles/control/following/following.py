"""All that clients of this process follow: events, and live transcripts."""

import asyncio
import logging
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.sessions.transcripts import Transcripts
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.device_matches import DeviceMatches
from fleet.adapters.sql.event_rows import EventLog
from fleet.adapters.sql.token_rows import TokenRows
from fleet.ground.metrics import events as counted
from fleet.ground.tasks import Backoff, keep_running
from fleet.roles.control.following.feed import EventFeed
from fleet.roles.control.following.live import LiveTranscripts
from fleet.roles.control.following.stream import EventStreams
from fleet.roles.control.following.tail import EventTail

log = logging.getLogger(__name__)

CHECK_SECONDS = 5.0
"""From one look for tokens that another process revoked to the next."""


@dataclass(frozen=True, slots=True)
class Following:
    """The clients of this process, and what they follow."""

    feed: EventFeed
    streams: EventStreams
    tail: EventTail
    live: LiveTranscripts
    tokens: TokenRows

    @classmethod
    def of(cls, database: Database, store: Store) -> "Following":
        log_of_events, matches = EventLog(database), DeviceMatches(database)
        feed = EventFeed(matches)
        return cls(
            feed=feed,
            streams=EventStreams(feed, log_of_events, matches),
            tail=EventTail(log_of_events, feed),
            live=LiveTranscripts(Transcripts(store)),
            tokens=TokenRows(database),
        )

    async def run(self) -> None:
        """Give clients what happens, until cancelled."""
        with ExitStack() as stack:
            stack.enter_context(counted.followers.following(lambda: float(self.feed.count)))
            async with asyncio.TaskGroup() as group:
                parts = {"events": self.tail.run, "transcripts": self.live.run, "tokens": self._check_tokens}
                for name, work in parts.items():
                    group.create_task(keep_running(name, work, Backoff(limit=2.0)), name=name)

    def forget(self, tokens: Collection[int]) -> None:
        """End the streams of tokens that were revoked."""
        self.feed.end(tokens)
        self.live.end(tokens)

    async def _check_tokens(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            await self.check_tokens()

    async def check_tokens(self) -> None:
        """End the streams of tokens that another process has revoked.

        Raises:
            Unavailable: The database does not answer; the streams go on.
        """
        # Operators of the file have no token in SQL.
        following = (self.feed.tokens() | self.live.tokens()) - {0}
        if following:
            self.forget(following - await self.tokens.existing(following))

    def close(self) -> None:
        """End the streams of all clients: the process stops."""
        self.feed.close()
        self.live.close()
