from collections.abc import Collection, Sequence

import pytest

from fleet.adapters.sql.event_rows import LOST, StoredEvent
from fleet.core.query.conditions import Comparison, Condition
from fleet.ground.errors import Overloaded, SlowQuery
from fleet.roles.control.access import Principal
from fleet.roles.control.following import feed as module
from fleet.roles.control.following.feed import EventFeed, frame_of
from fleet.roles.control.following.filters import EventFilter
from fleet.roles.control.following.shares import ShareTaken
from tests.support.virtual_time import elapse

BERLIN = Comparison("tag", "=", "berlin", "site")


def one_of(token: int, tenant: int = 1) -> Principal:
    return Principal("token", f"t{token}", tenant, frozenset(), token)


WHO = one_of(1)


class Matcher:
    """Knows which devices are in Berlin."""

    def __init__(self, *macs: int) -> None:
        self.macs = set(macs)
        self.asked: list[set[int]] = []

    async def matching(self, tenant: int, conditions: Sequence[Condition], macs: Collection[int]) -> list[set[int]]:
        self.asked.append(set(macs))
        return [self.macs & set(macs) for _ in conditions]


def event(number: int, kind: str = "turn.answered", mac: int = 1, tenant: int = 1) -> StoredEvent:
    return StoredEvent(number, tenant, 1_700_000_000_123, kind, mac, '{"turn":"t"}')


def ids(frames: bytes) -> list[int]:
    return [int(line[4:]) for line in frames.decode().splitlines() if line.startswith("id: ")]


def test_a_frame_holds_the_whole_event_in_one_line() -> None:
    told = StoredEvent(7, 1, 1_700_000_000_123, "turn.answered", 0xAABBCC000001, '{"a":\n1}')
    assert frame_of(told).decode() == (
        'id: 7\nevent: turn.answered\ndata: {"id":7,"at":"2023-11-14T22:13:20.123Z","kind":"turn.answered",'
        '"device":"aa:bb:cc:00:00:01","data":{"a": 1}}\n\n'
    )
    assert b'"device":null' in frame_of(event(1, LOST, mac=0))


async def test_each_client_gets_what_its_filter_takes() -> None:
    feed = EventFeed(Matcher(2))
    wanted = {
        "all": EventFilter(1),
        "turns": EventFilter(1, frozenset({"turn"})),
        "online": EventFilter(1, frozenset({"device.online", "x"})),
        "one": EventFilter(1, mac=2),
        "berlin": EventFilter(1, condition=BERLIN),
        "other": EventFilter(2),
    }
    followers = {name: feed.join(one, WHO) for name, one in wanted.items()}
    await feed.give([event(1), event(2, "device.online", 2), event(3, tenant=2), event(4, LOST, mac=0)])
    assert {name: ids(one.take()) for name, one in followers.items()} == {
        "all": [1, 2, 4],
        "turns": [1, 4],
        "online": [2, 4],
        "one": [2, 4],
        "berlin": [2, 4],
        "other": [3],
    }
    assert feed.last == 4


async def test_a_device_that_moves_is_noticed_after_some_seconds() -> None:
    matcher = Matcher(1)
    feed = EventFeed(matcher)
    follower = feed.join(EventFilter(1, condition=BERLIN), WHO)
    await feed.give([event(1)])
    matcher.macs = {2}
    await feed.give([event(2), event(3, mac=2)])
    assert ids(follower.take()) == [1, 2, 3] and matcher.asked == [{1}, {2}]
    await elapse(module.MATCH_SECONDS + 1)
    await feed.give([event(4), event(5, mac=2)])
    assert ids(follower.take()) == [5]


async def test_a_filter_that_is_too_slow_ends_its_own_clients_only() -> None:
    class Slow(Matcher):
        async def matching(self, tenant: int, conditions: Sequence[Condition], macs: Collection[int]) -> list[set[int]]:
            if tenant == 1:
                raise SlowQuery("too slow")
            return await super().matching(tenant, conditions, macs)

    feed = EventFeed(Slow(2))
    slow = feed.join(EventFilter(1, condition=BERLIN), WHO)
    plain = feed.join(EventFilter(1), WHO)
    other = feed.join(EventFilter(2, condition=BERLIN), one_of(2, tenant=2))
    await feed.give([event(1), event(2, mac=2, tenant=2)])
    assert slow.ended and not plain.ended and not other.ended
    assert (ids(slow.take()), ids(plain.take()), ids(other.take())) == ([], [1], [2])


async def test_a_client_that_does_not_read_is_dropped_and_costs_no_memory() -> None:
    feed = EventFeed(Matcher())
    slow, other = feed.join(EventFilter(1), WHO), feed.join(EventFilter(1), WHO)
    size = len(frame_of(event(1)))
    for number in range(module.MOST_WAITING // size + 2):
        await feed.give([event(number)])
        other.take()
    assert slow.overflowed and slow.take() == b"" and slow.woken.is_set() is False
    await feed.give([event(1)])
    assert slow.take() == b"" and not other.overflowed


async def test_the_numbers_of_clients_and_of_conditions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FOLLOWERS", 3)
    monkeypatch.setattr(module, "MOST_CONDITIONS", 1)
    feed = EventFeed(Matcher())
    first = feed.join(EventFilter(1, condition=BERLIN), one_of(1, 1))
    with pytest.raises(Overloaded, match="filters"):
        feed.join(EventFilter(2, condition=BERLIN), one_of(2, 2))
    feed.join(EventFilter(2), one_of(2, 2))
    feed.join(EventFilter(3), one_of(3, 3))
    with pytest.raises(Overloaded, match="clients"):
        feed.check(EventFilter(4), one_of(4, 4))
    feed.leave(first)
    feed.leave(first)
    assert feed.count == 2
    feed.join(EventFilter(4), one_of(4, 4))


async def test_a_token_and_a_tenant_leave_places_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FOLLOWERS", 8)
    feed = EventFeed(Matcher())
    first = [feed.join(EventFilter(1), one_of(1)) for _ in range(2)]
    with pytest.raises(ShareTaken, match="one token at a time: at most 2"):
        feed.check(EventFilter(1), one_of(1))
    for _ in range(2):
        feed.join(EventFilter(1), one_of(2))
    with pytest.raises(ShareTaken, match="one tenant at a time: at most 4"):
        feed.check(EventFilter(1), one_of(3))
    feed.join(EventFilter(2), one_of(4, 2))
    feed.leave(first[0])
    feed.join(EventFilter(1), one_of(1))


async def test_a_token_and_a_tenant_leave_conditions_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CONDITIONS", 8)
    feed = EventFeed(Matcher())
    wanted = [EventFilter(1, mac=number, condition=BERLIN) for number in range(9)]
    for number in range(2):
        feed.join(wanted[number], one_of(1))
    with pytest.raises(ShareTaken, match="filters of one token at a time: at most 2"):
        feed.check(wanted[2], one_of(1))
    feed.join(wanted[0], one_of(1))
    feed.join(EventFilter(1), one_of(1))
    for number in range(2, 4):
        feed.join(wanted[number], one_of(2))
    with pytest.raises(ShareTaken, match="filters of one tenant at a time: at most 4"):
        feed.check(wanted[4], one_of(3))
    feed.join(wanted[0], one_of(3))
    feed.join(EventFilter(2, condition=BERLIN), one_of(4, 2))


async def test_the_clients_of_a_token_end_with_it() -> None:
    feed = EventFeed(Matcher())
    ended, other = feed.join(EventFilter(1), one_of(1)), feed.join(EventFilter(1), one_of(2))
    assert feed.principals() == {one_of(1), one_of(2)}
    feed.end([one_of(1)])
    await feed.give([event(1)])
    assert ended.ended and ended.take() == b"" and not other.ended and ids(other.take()) == [1]


async def test_all_clients_end_when_the_process_stops() -> None:
    feed = EventFeed(Matcher())
    follower = feed.join(EventFilter(1), WHO)
    feed.close()
    assert follower.ended and follower.woken.is_set()
    with pytest.raises(Overloaded):
        feed.join(EventFilter(1), WHO)
