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
from fleet.roles.control.access import Principal
from fleet.roles.control.accounts.access import AccountAccess
from fleet.roles.control.following.feed import EventFeed
from fleet.roles.control.following.live import LiveTranscripts
from fleet.roles.control.following.stream import EventStreams
from fleet.roles.control.following.tail import EventTail

log = logging.getLogger(__name__)

CHECK_SECONDS = 5.0
"""From one look for tokens and sign-ins that another process ended to the next."""


@dataclass(frozen=True, slots=True)
class Following:
    """The clients of this process, and what they follow."""

    feed: EventFeed
    streams: EventStreams
    tail: EventTail
    live: LiveTranscripts
    tokens: TokenRows
    accounts: AccountAccess

    @classmethod
    def of(cls, database: Database, store: Store, accounts: AccountAccess) -> "Following":
        log_of_events, matches = EventLog(database), DeviceMatches(database)
        feed = EventFeed(matches)
        return cls(
            feed=feed,
            streams=EventStreams(feed, log_of_events, matches),
            tail=EventTail(log_of_events, feed),
            live=LiveTranscripts(Transcripts(store)),
            tokens=TokenRows(database),
            accounts=accounts,
        )

    async def run(self) -> None:
        """Give clients what happens, until cancelled."""
        with ExitStack() as stack:
            stack.enter_context(counted.followers.following(lambda: float(self.feed.count)))
            async with asyncio.TaskGroup() as group:
                parts = {"events": self.tail.run, "transcripts": self.live.run, "principals": self._check_principals}
                for name, work in parts.items():
                    group.create_task(keep_running(name, work, Backoff(limit=2.0)), name=name)

    def forget_tokens(self, tokens: Collection[int]) -> None:
        """End the streams of tokens that were revoked."""
        self._end({one for one in self._principals() if one.token in tokens})

    def forget_sign_ins(self, *, digest: str = "", account: int = 0) -> None:
        """End the streams of one sign-in, or of all of an account."""
        signed_in = {one: one.sign_in for one in self._principals() if one.sign_in is not None}
        self._end({one for one, how in signed_in.items() if how.digest == digest or how.account == account})

    async def _check_principals(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            await self.check_principals()

    async def check_principals(self) -> None:
        """End the streams of tokens and sign-ins that another process has ended.

        Raises:
            Unavailable: The database does not answer; the streams go on.
        """
        # Operators of the file have neither.
        following = self._principals()
        if tokens := {one.token for one in following} - {0}:
            self.forget_tokens(tokens - await self.tokens.existing(tokens))
        self._end(await self.accounts.ended(following))

    def _principals(self) -> set[Principal]:
        return self.feed.principals() | self.live.principals()

    def _end(self, principals: Collection[Principal]) -> None:
        self.feed.end(principals)
        self.live.end(principals)

    def close(self) -> None:
        """End the streams of all clients: the process stops."""
        self.feed.close()
        self.live.close()
