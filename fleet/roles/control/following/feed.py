"""Gives new events to the clients that follow them.

Filters that are equal share one topic. For each kind and device the topics that take it are kept, so that an event
costs no look at every client. Which devices meet the condition of a topic is asked of the database once for each
device, and asked again after some seconds.
"""

import asyncio
import logging
import random
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime

from fleet.adapters.sql.event_rows import LOST, StoredEvent
from fleet.adapters.sql.mac_numbers import mac_text
from fleet.ground.errors import Overloaded, SlowQuery
from fleet.roles.control.access import Principal
from fleet.roles.control.following.filters import DeviceMatcher, EventFilter
from fleet.roles.control.following.shares import check_count, check_share, is_same_token

log = logging.getLogger(__name__)

MOST_FOLLOWERS = 4_000
MOST_CONDITIONS = 400
"""Different conditions at a time: each is asked of the database for devices that it does not know."""
MOST_WAITING = 128 * 1024
"""Bytes that wait for one client; with more it is dropped."""
MATCH_SECONDS = 20.0
"""How long it may take until a changed device meets a condition, or meets it no more."""
_MOST_ROUTES = 100_000


class Follower:
    """One client: the frames that wait for it."""

    def __init__(self, wanted: EventFilter, who: Principal) -> None:
        self.wanted, self.who = wanted, who
        self.woken = asyncio.Event()
        """Set when frames wait, and at the end."""
        self.overflowed = False
        """Whether frames were dropped because too many waited."""
        self.ended = False
        self.position = 0
        """The id up to which the client was given all."""
        self._frames: list[bytes] = []
        self._size = 0

    def put(self, frame: bytes) -> None:
        """Add a frame; drop all that wait if they are too many."""
        if self.overflowed or self.ended:
            return
        self._frames.append(frame)
        self._size += len(frame)
        if self._size > MOST_WAITING:
            self.take()
            self.overflowed = True
        self.woken.set()

    def take(self) -> bytes:
        """Return what waits."""
        frames, self._frames, self._size = self._frames, [], 0
        self.woken.clear()
        return b"".join(frames)

    def end(self) -> None:
        """Drop what waits, and take no more: the client comes again for it."""
        self.take()
        self.ended = True
        self.woken.set()


class _Topic:
    """A filter with its followers, and what is known of the devices that meet its condition."""

    def __init__(self, wanted: EventFilter) -> None:
        self.wanted = wanted
        self.followers: set[Follower] = set()
        self.known: dict[int, bool] = {}
        self.until = 0.0

    def takes(self, event: StoredEvent) -> bool:
        if not self.wanted.passes(event):
            return False
        return self.wanted.condition is None or event.kind == LOST or self.known.get(event.mac, False)


class EventFeed:
    """The clients of this process.

    Args:
        matcher: Looks which devices meet a condition.
    """

    def __init__(self, matcher: DeviceMatcher) -> None:
        self._matcher = matcher
        self._topics: dict[EventFilter, _Topic] = {}
        self._routes: dict[tuple[int, str, int], tuple[_Topic, ...]] = {}
        self._followers = 0
        self.last = 0
        """The id of the newest event that was given out."""
        self.closed = False
        self.ready = asyncio.Event()
        """Set when `last` is known."""

    @property
    def count(self) -> int:
        return self._followers

    def check(self, wanted: EventFilter, who: Principal) -> None:
        """Check that there is a place.

        Raises:
            ShareTaken: The token or its tenant has all that it may have.
            Overloaded: There are too many clients, or too many conditions.
        """
        if not self.closed:
            check_share(who, [one.who for one in self._each()], MOST_FOLLOWERS, "event streams")
        if self.closed or self._followers >= MOST_FOLLOWERS:
            raise Overloaded("too many clients follow events")
        if wanted.condition is not None:
            self._check_conditions(wanted, who)

    def _check_conditions(self, wanted: EventFilter, who: Principal) -> None:
        used = [one for one in self._topics.values() if one.wanted.condition is not None]
        own = [one.wanted for one in used if any(is_same_token(who, each.who) for each in one.followers)]
        if wanted not in own:
            check_count(len(own), max(1, MOST_CONDITIONS // 4), "different filters of one token")
        if wanted in self._topics:
            return
        of_tenant = sum(one.wanted.tenant == who.tenant for one in used)
        check_count(of_tenant, max(1, MOST_CONDITIONS // 2), "different filters of one tenant")
        if len(used) >= MOST_CONDITIONS:
            raise Overloaded("too many different filters are followed")

    def join(self, wanted: EventFilter, who: Principal) -> Follower:
        """Follow events from now on; leave with `leave`.

        Raises:
            ShareTaken: There is no place for this token or tenant.
            Overloaded: There is no place.
        """
        self.check(wanted, who)
        topic = self._topics.get(wanted)
        if topic is None:
            topic = self._topics[wanted] = _Topic(wanted)
            self._routes.clear()
        follower = Follower(wanted, who)
        topic.followers.add(follower)
        self._followers += 1
        return follower

    def leave(self, follower: Follower) -> None:
        topic = self._topics.get(follower.wanted)
        if topic is None or follower not in topic.followers:
            return
        topic.followers.remove(follower)
        self._followers -= 1
        if not topic.followers:
            del self._topics[follower.wanted]
            self._routes.clear()

    def close(self) -> None:
        """End all clients, and take no more: the process stops."""
        self.closed = True
        self.ready.set()
        for follower in self._each():
            follower.end()

    def principals(self) -> set[Principal]:
        """Return who follows now."""
        return {one.who for one in self._each()}

    def end(self, principals: Collection[Principal]) -> None:
        """End the clients of some principals."""
        for follower in self._each():
            if follower.who in principals:
                follower.end()

    def _each(self) -> Iterator[Follower]:
        return (follower for topic in self._topics.values() for follower in topic.followers)

    async def give(self, events: Sequence[StoredEvent]) -> None:
        """Give new events to their followers, in order.

        Raises:
            Unavailable: The database does not answer; nothing was given.
        """
        if not events:
            return
        macs = {one.mac for one in events}
        # Again, because a client may have joined while the database answered.
        while await self._learn(macs):
            pass
        for event in events:
            if topics := self._route(event):
                frame = frame_of(event)
                for topic in topics:
                    for follower in topic.followers:
                        follower.put(frame)
        self.last = events[-1].id

    async def _learn(self, macs: Collection[int]) -> bool:
        """Ask which devices meet the conditions; return False if that was known."""
        now = asyncio.get_running_loop().time()
        asking: dict[int, list[_Topic]] = {}
        unknown: dict[int, set[int]] = {}
        for topic in self._topics.values():
            if topic.wanted.condition is None:
                continue
            if topic.until < now:
                # Spread, so that not all conditions are asked anew at once.
                topic.known, topic.until = {}, now + MATCH_SECONDS * random.uniform(0.5, 1.0)
            if new := [mac for mac in macs if mac not in topic.known]:
                asking.setdefault(topic.wanted.tenant, []).append(topic)
                unknown.setdefault(topic.wanted.tenant, set()).update(new)
        for tenant, topics in asking.items():
            # One question for all conditions.
            conditions = [topic.wanted.condition for topic in topics if topic.wanted.condition is not None]
            try:
                found = await self._matcher.matching(tenant, conditions, unknown[tenant])
            except SlowQuery as error:
                log.warning("filters too slow", extra={"tenant": tenant, "reason": str(error)})
                self._drop(topics)
                found = [set() for _ in topics]
            for topic, met in zip(topics, found, strict=True):
                topic.known.update((mac, mac in met) for mac in unknown[tenant])
            self._routes.clear()
        return bool(asking)

    def _drop(self, topics: Sequence[_Topic]) -> None:
        """End the clients of some topics: each may come again for what it missed, and no other one waits for it."""
        for topic in topics:
            for follower in topic.followers:
                follower.end()

    def _route(self, event: StoredEvent) -> tuple[_Topic, ...]:
        key = (event.tenant, event.kind, event.mac)
        found = self._routes.get(key)
        if found is None:
            if len(self._routes) >= _MOST_ROUTES:
                self._routes.clear()
            found = self._routes[key] = tuple(topic for topic in self._topics.values() if topic.takes(event))
        return found


def frame_of(event: StoredEvent) -> bytes:
    """Return an event as text/event-stream has it."""
    return f"id: {event.id}\nevent: {event.kind}\ndata: {event_json(event)}\n\n".encode()


def event_json(event: StoredEvent) -> str:
    """Return an event as JSON in one line."""
    at = datetime.fromtimestamp(event.at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    device = f'"{mac_text(event.mac)}"' if event.mac else "null"
    data = event.data.replace("\n", " ").replace("\r", " ")
    return f'{{"id":{event.id},"at":"{at}","kind":"{event.kind}","device":{device},"data":{data}}}'
