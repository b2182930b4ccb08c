"""One client's stream of events (text/event-stream): what it missed, then what happens."""

import asyncio
import logging
from collections.abc import AsyncIterator

from fleet.adapters.sql.event_rows import EventLog, StoredEvent
from fleet.ground.errors import Overloaded, Unavailable
from fleet.ground.metrics import events as counted
from fleet.roles.control.access import Principal
from fleet.roles.control.following.feed import EventFeed, Follower, frame_of
from fleet.roles.control.following.filters import DeviceMatcher, EventFilter, select
from fleet.roles.control.following.shares import ShareTaken
from fleet.roles.control.following.turns import Turns

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 15.0
"""Between two signs of life; proxies end silent connections."""
LIFE_SECONDS = 600.0
"""After this, up to a tenth more, a stream ends: an operator whom the file does not name any more does not follow for
ever. A client connects again and goes on where it was."""
RETRY_MS = 2_000
_PAGE = 500
_PAGE_BYTES = 256 * 1024
"""What a client is given at once of what it missed: no more waits for one that does not read."""
_MOST_READING = 8
"""Clients whose missed events are read at a time. None keeps its place while it is written to; then tenants, and the
tokens of each, take turns."""
_MOST_ATTEMPTS = 20

Frames = AsyncIterator[bytes]


class EventStreams:
    """Makes the streams of this process.

    Args:
        feed: Of this process.
        log: The stored events.
        matcher: Looks which devices meet a condition.
    """

    def __init__(self, feed: EventFeed, log: EventLog, matcher: DeviceMatcher) -> None:
        self._feed, self._log, self._matcher = feed, log, matcher
        self._turns = Turns(_MOST_READING)

    async def page(self, wanted: EventFilter, after: int, most: int) -> tuple[list[StoredEvent], int | None, bool]:
        """Return some stored events above an id, the id above which the next page begins, and whether some are missing.

        A page may be short, or even empty, though there is a next one.

        Raises:
            Unavailable: The database does not answer.
        """
        oldest, newest = await self._log.ends()
        start, gap = self._start(after, oldest, newest)
        found = await self._log.after(start, most, tenant=wanted.tenant, mac=wanted.mac)
        following = found[-1].id if len(found) == most and found[-1].id < newest else None
        return await select(found, wanted, self._matcher), following, gap

    async def newest(self, wanted: EventFilter, most: int) -> list[StoredEvent]:
        """Return those of the newest stored events that pass, the oldest of them first.

        Raises:
            Unavailable: The database does not answer.
        """
        found = await self._log.newest(most, tenant=wanted.tenant, mac=wanted.mac)
        return await select(found, wanted, self._matcher)

    def follow(self, who: Principal, wanted: EventFilter, after: int | None, seconds: float = LIFE_SECONDS) -> Frames:
        """Return the frames of a new client.

        Args:
            who: The client.
            wanted: What it follows.
            after: The id of the last event that it has; None to begin with the next one.
            seconds: How long it may follow.

        Raises:
            ShareTaken: The token or its tenant follows as much as it may.
            Overloaded: Too many clients follow.
        """
        self._feed.check(wanted, who)
        return self._frames(who, wanted, after, asyncio.get_running_loop().time() + seconds)

    async def _frames(self, who: Principal, wanted: EventFilter, after: int | None, until: float) -> Frames:
        await self._feed.ready.wait()
        # Joined here and not before: whoever goes before the first frame must not stay joined.
        try:
            follower = self._feed.join(wanted, who)
        except (Overloaded, ShareTaken):
            # Others came first since the request was checked.
            return
        follower.position = self._feed.last
        clock = asyncio.get_running_loop().time

        def is_over() -> bool:
            return follower.ended or clock() >= until

        try:
            yield f"retry: {RETRY_MS}\n\n".encode()
            while not is_over():
                if after is not None or follower.overflowed:
                    async for frame in self._caught_up(follower, follower.position if after is None else after):
                        if is_over():
                            return
                        yield frame
                    if follower.overflowed:
                        counted.slow_followers.add()
                        return
                    after = None
                try:
                    async with asyncio.timeout(min(HEARTBEAT_SECONDS, max(0.01, until - clock()))):
                        await follower.woken.wait()
                except TimeoutError:
                    yield b": alive\n\n"
                    continue
                if frames := self._take(follower):
                    yield frames
        finally:
            self._feed.leave(follower)

    def _take(self, follower: Follower) -> bytes:
        """Return what waits for a client; nothing if some of it was dropped, as that is read from SQL."""
        if follower.overflowed:
            return b""
        follower.position = self._feed.last
        return follower.take()

    async def _caught_up(self, follower: Follower, after: int) -> Frames:
        """Yield what a client missed; without the database its stream ends, and it comes again."""
        try:
            async for frame in self._catch_up(follower, after):
                yield frame
        except Unavailable as error:
            log.warning("event stream ended", extra={"tenant": follower.who.tenant, "reason": str(error)})
            follower.end()

    async def _catch_up(self, follower: Follower, after: int) -> Frames:
        """Yield what a client missed, also in a burst that was too large to wait for it.

        What happens meanwhile waits for it; if that is too much, it is read again.
        """
        async with self._turns.taken(follower.who):
            oldest, newest = await self._log.ends()
        position, gap = self._start(after, oldest, newest)
        if gap:
            yield f'id: {position}\nevent: gap\ndata: {{"from":{after},"oldest":{oldest}}}\n\n'.encode()
        for _ in range(_MOST_ATTEMPTS):
            follower.take()
            follower.overflowed, joined = False, self._feed.last
            while position < joined and not follower.ended:
                frames, position = await self._missed(follower, position, joined)
                if frames:
                    yield frames
            if not follower.overflowed:
                follower.position = max(joined, position)
                return

    async def _missed(self, follower: Follower, after: int, last: int) -> tuple[bytes, int]:
        """Return frames of what happened above an id and up to another one, and the id up to which they go."""
        wanted = follower.wanted
        async with self._turns.taken(follower.who):
            found = await self._log.after(after, _PAGE, tenant=wanted.tenant, mac=wanted.mac)
            passed = await select([one for one in found if one.id <= last], wanted, self._matcher)
        frames, size = [], 0
        for event in passed:
            frames.append(frame_of(event))
            size += len(frames[-1])
            if size >= _PAGE_BYTES:
                return b"".join(frames), event.id
        return b"".join(frames), min(found[-1].id, last) if len(found) == _PAGE else last

    def _start(self, after: int, oldest: int, newest: int) -> tuple[int, bool]:
        """Return where to begin, and whether events between are missing. An id of the future is of another database."""
        if after > newest:
            return newest, True
        return (oldest - 1, True) if after < oldest - 1 else (after, False)
