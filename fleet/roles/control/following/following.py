"""All that clients of this process follow: events, and live transcripts."""

import asyncio
import logging
from contextlib import ExitStack
from dataclasses import dataclass

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.sessions.transcripts import Transcripts
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.device_matches import DeviceMatches
from fleet.adapters.sql.event_rows import EventLog
from fleet.ground.metrics import events as counted
from fleet.ground.tasks import Backoff, keep_running
from fleet.roles.control.following.feed import EventFeed
from fleet.roles.control.following.live import LiveTranscripts
from fleet.roles.control.following.stream import EventStreams
from fleet.roles.control.following.tail import EventTail

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Following:
    """The clients of this process, and what they follow."""

    feed: EventFeed
    streams: EventStreams
    tail: EventTail
    live: LiveTranscripts

    @classmethod
    def of(cls, database: Database, store: Store) -> "Following":
        log_of_events, matches = EventLog(database), DeviceMatches(database)
        feed = EventFeed(matches)
        return cls(
            feed=feed,
            streams=EventStreams(feed, log_of_events, matches),
            tail=EventTail(log_of_events, feed),
            live=LiveTranscripts(Transcripts(store)),
        )

    async def run(self) -> None:
        """Give clients what happens, until cancelled."""
        with ExitStack() as stack:
            stack.enter_context(counted.followers.following(lambda: float(self.feed.count)))
            async with asyncio.TaskGroup() as group:
                for name, work in (("events", self.tail.run), ("transcripts", self.live.run)):
                    group.create_task(keep_running(name, work, Backoff(limit=2.0)), name=name)

    def close(self) -> None:
        """End the streams of all clients: the process stops."""
        self.feed.close()
        self.live.close()
