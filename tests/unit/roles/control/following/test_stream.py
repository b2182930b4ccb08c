import asyncio
from collections.abc import AsyncIterator

import pytest

from fleet.adapters.sql.event_rows import StoredEvent
from fleet.ground.errors import Overloaded, Unavailable
from fleet.roles.control.following import feed as feeds
from fleet.roles.control.following import stream as streams
from fleet.roles.control.following.feed import EventFeed, frame_of
from fleet.roles.control.following.filters import EventFilter
from fleet.roles.control.following.stream import EventStreams
from fleet.roles.control.following.tail import POLL_SECONDS, EventTail
from tests.support.virtual_time import elapse
from tests.unit.roles.control.following.test_feed import BERLIN, WHO, Matcher, event, ids, one_of

ALL = EventFilter(1)


class Log:
    """Stored events."""

    def __init__(self, events: list[StoredEvent], dropped: int = 0) -> None:
        self.events, self.dropped = events, dropped
        self.reads = 0

    async def after(self, last: int, most: int, *, tenant: int | None = None, mac: int = 0) -> list[StoredEvent]:
        self.reads += 1
        await elapse(0.01)
        found = [one for one in self.events[self.dropped :] if one.id > last and tenant in (None, one.tenant)]
        return [one for one in found if not mac or one.mac == mac][:most]

    async def ends(self) -> tuple[int, int]:
        await elapse(0.01)
        newest = self.events[-1].id if self.events else 0
        return (self.events[self.dropped].id if self.dropped < len(self.events) else newest + 1), newest


class Site:
    """A log, the feed of a process, and its tail."""

    def __init__(self, events: list[StoredEvent], dropped: int = 0) -> None:
        self.log = Log(events, dropped)
        self.matcher = Matcher(2)
        self.feed = EventFeed(self.matcher)
        self.streams = EventStreams(self.feed, self.log, self.matcher)  # type: ignore[arg-type]
        self.tail = EventTail(self.log, self.feed)  # type: ignore[arg-type]
        self.feed.last = events[-1].id if events else 0
        self.feed.ready.set()

    def happen(self, count: int, *, told: bool = True) -> None:
        first = len(self.log.events) + 1
        fresh = [event(number) for number in range(first, first + count)]
        self.log.events += fresh
        if told:
            self.tail.offer(fresh)


async def read(frames: AsyncIterator[bytes]) -> str:
    async with asyncio.timeout(1000):
        return (await anext(frames)).decode()


async def read_until(frames: AsyncIterator[bytes], last: int) -> list[int]:
    found: list[int] = []
    while not found or found[-1] < last:
        found += ids((await read(frames)).encode())
    return found


async def test_a_new_client_gets_what_happens_from_now_on() -> None:
    site = Site([event(1)])
    frames = site.streams.follow(WHO, ALL, None)
    assert await read(frames) == "retry: 2000\n\n"
    site.happen(2)
    await site.tail.step()
    assert ids((await read(frames)).encode()) == [2, 3]
    assert site.log.reads == 0


async def test_a_client_that_comes_back_gets_what_it_missed_and_then_what_happens() -> None:
    site = Site([event(number) for number in range(1, 1201)])
    frames = site.streams.follow(WHO, ALL, 100)
    first = asyncio.create_task(read_until(frames, 1200))
    await elapse(0.001)
    site.happen(7)
    await site.tail.step()
    found = await first
    found += await read_until(frames, 1207) if found[-1] < 1207 else []
    assert found == list(range(101, 1208))


async def test_those_who_missed_much_keep_no_other_tenant_waiting() -> None:
    site = Site([event(number, tenant=number % 2 + 1) for number in range(1, 1201)])
    crowd = [site.streams.follow(WHO, ALL, 0) for _ in range(300)]
    many = [asyncio.create_task(read_until(one, 1200)) for one in crowd]
    await elapse(0.001)
    before = site.log.reads
    other = site.streams.follow(one_of(2, tenant=2), EventFilter(2), 0)
    assert (await read_until(other, 501))[0] == 1
    assert site.log.reads - before < 100
    assert all(found[-1] == 1200 for found in await asyncio.gather(*many))


async def test_a_stream_ends_plainly_while_the_database_is_away() -> None:
    site = Site([event(number) for number in range(1, 31)])

    async def away(*_: object, **__: object) -> list[StoredEvent]:
        raise Unavailable("away")

    site.log.after = away  # type: ignore[method-assign]
    frames = site.streams.follow(WHO, ALL, 10)
    await read(frames)
    with pytest.raises(StopAsyncIteration):
        await read(frames)


async def test_a_filter_holds_for_what_was_missed_too() -> None:
    site = Site([event(number, mac=number % 3) for number in range(1, 31)])
    assert await read_until(site.streams.follow(WHO, EventFilter(1, condition=BERLIN), 0), 29) == list(range(2, 31, 3))
    assert await read_until(site.streams.follow(WHO, EventFilter(1, mac=1), 10), 28) == [13, 16, 19, 22, 25, 28]


async def test_what_is_not_kept_any_more_is_told_as_a_gap() -> None:
    site = Site([event(number) for number in range(1, 31)], dropped=20)
    frames = site.streams.follow(WHO, ALL, 5)
    await read(frames)
    assert await read(frames) == 'id: 20\nevent: gap\ndata: {"from":5,"oldest":21}\n\n'
    assert await read_until(frames, 30) == list(range(21, 31))
    # The ids of a database that was restored from a backup begin again.
    frames = site.streams.follow(WHO, ALL, 99)
    await read(frames)
    assert (await read(frames)).startswith("id: 30\nevent: gap\n")
    frames = site.streams.follow(WHO, ALL, 20)
    await read(frames)
    assert ids((await read(frames)).encode())[0] == 21


async def test_a_page_ends_at_the_newest_event() -> None:
    site = Site([event(number) for number in range(1, 31)], dropped=10)
    found, following, gap = await site.streams.page(ALL, 0, 15)
    assert [one.id for one in found] == list(range(11, 26)) and following == 25 and gap
    found, following, gap = await site.streams.page(ALL, 25, 15)
    assert [one.id for one in found] == list(range(26, 31)) and following is None and not gap


async def test_a_client_that_falls_behind_while_it_catches_up_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "MOST_WAITING", 500)
    site = Site([event(number) for number in range(1, 1201)])
    frames = site.streams.follow(WHO, ALL, 0)
    await read(frames)
    found = ids((await read(frames)).encode())
    site.happen(50)
    await site.tail.step()
    assert found + await read_until(frames, 1250) == list(range(1, 1251))


async def test_a_silent_stream_shows_signs_of_life_and_ends_after_its_time() -> None:
    site = Site([event(1)])
    clock = asyncio.get_running_loop().time
    begun, frames = clock(), site.streams.follow(WHO, ALL, None, 40)
    await read(frames)
    rest = [frame async for frame in frames]
    assert clock() - begun == pytest.approx(40, abs=0.1)
    assert rest and set(rest) == {b": alive\n\n"} and site.feed.count == 0


async def test_a_burst_that_is_too_large_to_wait_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "MOST_WAITING", 500)
    site = Site([event(1)])
    frames = site.streams.follow(WHO, ALL, None)
    await read(frames)
    last = 1
    for count in (1, 50, 2, 1200, 1, 3):
        site.happen(count)
        await site.tail.step()
        assert await read_until(frames, last + count) == list(range(last + 1, last + count + 1))
        last += count
    assert site.feed.count == 1


async def test_a_client_that_falls_behind_again_and_again_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "MOST_WAITING", 500)
    site = Site([event(1)])
    frames = site.streams.follow(WHO, ALL, None)
    await read(frames)
    found, pieces = list[int](), 0
    site.happen(50)
    await site.tail.step()
    async for frame in frames:
        found += ids(frame)
        pieces += 1
        site.happen(50)
        await site.tail.step()
    assert found == list(range(2, found[-1] + 1)) and pieces == streams._MOST_ATTEMPTS and site.feed.count == 0


async def test_a_stopping_process_ends_all_streams_and_takes_no_new_one() -> None:
    site = Site([event(1)])
    frames = site.streams.follow(WHO, ALL, None)
    await read(frames)
    site.feed.close()
    assert [frame async for frame in frames] == []
    with pytest.raises(Overloaded):
        site.streams.follow(WHO, ALL, None)


async def test_a_client_that_leaves_before_its_first_frame_takes_no_place() -> None:
    site = Site([event(1)])
    frames = site.streams.follow(WHO, ALL, None)
    await frames.aclose()  # type: ignore[attr-defined]
    assert site.feed.count == 0


@pytest.fixture
async def running_tail() -> AsyncIterator[Site]:
    site = Site([event(1)])
    async with asyncio.TaskGroup() as group:
        task = group.create_task(site.tail.run(), name="tail")
        yield site
        task.cancel()


async def test_events_that_another_process_stored_are_found(running_tail: Site) -> None:
    frames = running_tail.streams.follow(WHO, ALL, None)
    await read(frames)
    running_tail.happen(3, told=False)
    await elapse(2 * POLL_SECONDS)
    running_tail.happen(2)
    assert await read_until(frames, running_tail.log.events[-1].id) == [2, 3, 4, 5, 6]


async def test_a_client_that_comes_before_the_newest_event_is_known_misses_none() -> None:
    site = Site([event(1), event(2)])
    site.feed.last = 0
    site.feed.ready.clear()
    frames = site.streams.follow(WHO, ALL, 1)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(read_until(frames, 4))
        await elapse(1)
        site.happen(1, told=False)
        tail = group.create_task(site.tail.run(), name="tail")
        await elapse(1)
        site.happen(1)
        assert await first == [2, 3, 4]
        tail.cancel()


async def test_a_client_that_joins_while_the_newest_event_is_looked_up_misses_none() -> None:
    site = Site([event(1)])
    site.happen(1, told=False)
    async with asyncio.TaskGroup() as group:
        looking = group.create_task(site.tail.step())
        await asyncio.sleep(0)
        frames = site.streams.follow(WHO, ALL, None)
        await read(frames)
        await looking
    await site.tail.step()
    assert await read_until(frames, 2) == [2]


async def test_a_stream_that_catches_up_ends_with_its_token() -> None:
    site = Site([event(number) for number in range(1, 1201)])
    frames = site.streams.follow(WHO, ALL, 0)
    await read(frames)
    assert ids((await read(frames)).encode())[-1] == 500
    site.feed.end([WHO])
    assert [frame async for frame in frames] == [] and site.feed.count == 0


async def test_a_stream_that_catches_up_ends_after_its_time() -> None:
    site = Site([event(number) for number in range(1, 1201)])
    frames = site.streams.follow(WHO, ALL, 0, 40)
    await read(frames)
    assert ids((await read(frames)).encode())[-1] == 500
    await elapse(41)
    assert [frame async for frame in frames] == [] and site.feed.count == 0


async def test_a_client_that_finds_no_place_at_its_first_frame_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "MOST_FOLLOWERS", 4)
    site = Site([event(1)])
    first, second = site.streams.follow(WHO, ALL, None), site.streams.follow(WHO, ALL, None)
    await read(first)
    assert [frame async for frame in second] == [] and site.feed.count == 1


async def test_clients_that_do_not_read_do_not_keep_others_from_what_they_missed() -> None:
    site = Site([event(number) for number in range(1, 1201)])
    stuck = [site.streams.follow(WHO, ALL, 0) for _ in range(20)]
    for frames in stuck:
        await read(frames)
    async with asyncio.timeout(1000):
        assert [ids(await anext(frames))[0] for frames in stuck] == [1] * 20
        assert await read_until(site.streams.follow(WHO, ALL, 0), 1200) == list(range(1, 1201))


async def test_what_was_missed_is_given_in_pieces_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(frame_of(event(100)))
    monkeypatch.setattr(streams, "_PAGE_BYTES", 10 * size)
    site = Site([event(number) for number in range(1, 1201)])
    frames, found = site.streams.follow(WHO, ALL, 0), list[int]()
    await read(frames)
    while not found or found[-1] < 1200:
        piece = (await read(frames)).encode()
        assert len(piece) <= 11 * size
        found += ids(piece)
    assert found == list(range(1, 1201))
