from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.reports import Reports
from fleet.adapters.redis.devices.tools import ToolLists
from fleet.adapters.redis.sessions.calls import CallBegun, CallingTurn, CallRefused, CallTable
from fleet.adapters.redis.sessions.conversations import (
    FRESH_SECONDS,
    LONGEST_HISTORY,
    MOST_RESUMES,
    Begun,
    Conversations,
    Opening,
    Refusal,
    StoredJournal,
)
from fleet.adapters.redis.sessions.sessions import SessionRecord, Sessions
from fleet.adapters.redis.sessions.turn_context import Context
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.ports import Message, TokenUsage, ToolCall
from fleet.core.reports import DeviceReport
from fleet.ground.errors import Fenced
from fleet.wire.mcp import ToolSpec
from fleet.wire.messages import AudioFormat

TURN = (
    Message("user", "set it to 30"),
    Message("assistant", "", (ToolCall("c", "volume", '{"volume":30}'),)),
    Message("tool", "true", call_id="c"),
    Message("assistant", "好的。"),
)
LOST = Owner("another", "1")
PATIENCE = 240.0

Begin = Callable[..., Awaitable[Begun | Refusal]]


@pytest.fixture
async def session(store: Store, owner: Owner, mac: str) -> SessionRecord:
    one = SessionRecord("s1", mac, "xiaozhi", "e1", 7, "0" * 32, AudioFormat(16000, 60), AudioFormat(24000, 60))
    await Sessions(store).open(owner, one)
    return one


@pytest.fixture
def conversations(store: Store) -> Conversations:
    return Conversations(store, 60)


@pytest.fixture
async def begin(store: Store, conversations: Conversations, owner: Owner, mac: str) -> Begin:
    """Begins a turn whose entry was written so many seconds from now, on the server's clock."""
    now, _, _ = str(await store.client.xadd(store.keys.inbox(store.keys.shard(mac)), {"m": ""})).partition("-")

    async def one(turn: str, at: int = 0, owner: Owner = owner, session: str = "s1", patience: float = PATIENCE) -> Any:
        opening = Opening(session, turn, TURN[0], f"{int(now) + at * 1000}-1")
        return await conversations.begin(owner, mac, opening, patience, 9)

    return one


@pytest.fixture
def remember(begin: Begin, conversations: Conversations, owner: Owner, mac: str) -> Callable[..., Awaitable[bool]]:
    """Runs a turn that leaves these messages in the history."""

    async def one(turn: str, *lines: Message, at: int = 0) -> bool:
        assert isinstance(await begin(turn, at), Begun)
        return await conversations.remember(owner, mac, StoredJournal(turn, "written", lines, 1), lines)

    return one


async def history(store: Store, mac: str, most: int = 1000) -> list[Message]:
    return list((await Conversations(store, 60).context(mac, most)).history)


async def test_a_turn_begins_only_in_the_live_session(
    conversations: Conversations, begin: Begin, session: SessionRecord, mac: str
) -> None:
    assert await begin("t1", session="other") == "gone"
    assert await conversations.journal(mac) is None
    assert await begin("t1") == Begun(session)
    assert await conversations.journal(mac) == StoredJournal("t1", "running", TURN[:1], 0)


async def test_a_turn_that_begins_again_is_taken_up_where_it_was_left(
    conversations: Conversations, owner: Owner, begin: Begin, session: SessionRecord, mac: str
) -> None:
    assert await begin("t1") == Begun(session)
    assert await begin("t1") == Begun(session, StoredJournal("t1", "running", TURN[:1], 0))
    journal = StoredJournal("t1", "running", TURN[:3], 2, "And")
    await conversations.record(owner, mac, journal)
    assert await begin("t1") == Begun(session, journal)


async def test_a_turn_that_ended_is_taken_up_as_ended(
    conversations: Conversations, owner: Owner, begin: Begin, session: SessionRecord, mac: str
) -> None:
    await begin("t1")
    ended = StoredJournal("t1", "written", TURN, 1, apology="Sorry.")
    assert await conversations.remember(owner, mac, ended, TURN)
    assert await begin("t1") == Begun(session, ended)


async def test_the_newest_utterance_wins_whatever_comes_first(
    conversations: Conversations, owner: Owner, begin: Begin, session: SessionRecord, mac: str
) -> None:
    assert isinstance(await begin("newer", at=2), Begun)
    for _ in range(2):
        assert await begin("older", at=1) == "over"
    assert await conversations.journal(mac) == StoredJournal("newer", "running", TURN[:1], 0)


async def test_a_newer_turn_waits_until_the_one_before_was_ended(
    conversations: Conversations, owner: Owner, begin: Begin, session: SessionRecord, mac: str
) -> None:
    await begin("t1", at=1)
    assert await begin("t2", at=2) == "busy"
    assert await conversations.remember(owner, mac, StoredJournal("t1", "cut", TURN, 0), TURN[:1])
    assert await begin("t2", at=2) == Begun(session)
    assert await begin("t1", at=1) == "over"


async def test_a_turn_that_is_over_does_not_begin_again_even_from_a_newer_entry(
    begin: Begin, remember: Callable[..., Awaitable[bool]], session: SessionRecord
) -> None:
    for number in range(4):
        await remember(f"t{number}", *TURN, at=number)
    for number in range(3):
        assert await begin(f"t{number}", at=9) == "over"


async def test_an_utterance_that_waited_too_long_is_answered_no_more(begin: Begin, session: SessionRecord) -> None:
    assert await begin("t1", at=-int(FRESH_SECONDS) - 1) == Begun(session, late=True)
    assert await begin("t2", at=1) == "busy"


async def test_a_turn_that_was_left_too_long_is_answered_no_more(begin: Begin, session: SessionRecord) -> None:
    await begin("t1")
    taken_up = await begin("t1", patience=-1.0)
    assert isinstance(taken_up, Begun) and taken_up.late
    taken_up = await begin("t1")
    assert isinstance(taken_up, Begun) and not taken_up.late


async def test_a_turn_that_ended_its_workers_again_and_again_is_answered_no_more(
    begin: Begin, session: SessionRecord
) -> None:
    late = [isinstance(begun := await begin("t1"), Begun) and begun.late for _ in range(MOST_RESUMES + 2)]
    assert late == [False] * (MOST_RESUMES + 1) + [True]


async def test_a_beginning_that_the_client_library_repeats_is_one(
    begin: Begin, session: SessionRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = Store.call

    async def twice(self: Store, *args: Any) -> list[str]:
        await call(self, *args)
        return await call(self, *args)

    monkeypatch.setattr(Store, "call", twice)
    assert await begin("t1") == Begun(session)


async def test_a_turn_keeps_its_session_alive(store: Store, begin: Begin, session: SessionRecord, mac: str) -> None:
    await store.client.expire(store.keys.session(mac), 240)
    await begin("t1")
    assert await store.client.ttl(store.keys.session(mac)) > 240


async def test_history_comes_back_oldest_first(
    store: Store, remember: Callable[..., Awaitable[bool]], session: SessionRecord, mac: str
) -> None:
    assert await remember("t1", *TURN)
    assert await history(store, mac, 10) == list(TURN)
    assert await history(store, mac, 2) == list(TURN), "less than ten messages are too many"
    assert await history(store, mac, 0) == []
    assert 0 < await store.client.ttl(store.keys.history(mac)) <= 60


async def test_what_a_turn_remembers_again_takes_the_place_of_what_it_did_before(
    store: Store, owner: Owner, remember: Callable[..., Awaitable[bool]], session: SessionRecord, mac: str
) -> None:
    await remember("t1", *TURN)
    await remember("t2", *TURN, at=1)
    conversations, cut = Conversations(store, 60), Message("assistant", "cut")
    for _ in range(2):
        assert await conversations.remember(owner, mac, StoredJournal("t2", "cut", TURN, 1), (TURN[0], cut))
    assert await history(store, mac) == [*TURN, TURN[0], cut]
    assert await conversations.journal(mac) == StoredJournal("t2", "cut", TURN, 1)


async def test_a_turn_that_is_not_the_newest_changes_nothing(
    store: Store, owner: Owner, remember: Callable[..., Awaitable[bool]], session: SessionRecord, mac: str
) -> None:
    await remember("t1", *TURN)
    await remember("t2", *TURN, at=1)
    conversations = Conversations(store, 60)
    assert not await conversations.remember(owner, mac, StoredJournal("t1", "cut", TURN, 1), TURN)
    with pytest.raises(Fenced):
        await conversations.record(owner, mac, StoredJournal("t1", "running", TURN[:1], 9))
    assert await history(store, mac) == [*TURN, *TURN]
    assert await conversations.journal(mac) == StoredJournal("t2", "written", TURN, 1)


async def test_a_turn_that_was_cut_off_goes_no_further(
    store: Store, conversations: Conversations, owner: Owner, begin: Begin, session: SessionRecord, mac: str
) -> None:
    calls, asker = CallTable(store), CallingTurn(owner, "t1")
    await begin("t1")
    assert isinstance(await calls.begin(mac, "t1:a", 60, asker), CallBegun)
    cut = StoredJournal("t1", "cut", TURN[:1], 0)
    await conversations.remember(owner, mac, cut, TURN[:1])
    with pytest.raises(Fenced):
        await conversations.record(owner, mac, StoredJournal("t1", "running", TURN, 9))
    assert not await conversations.remember(owner, mac, StoredJournal("t1", "written", TURN, 1), TURN)
    assert await calls.begin(mac, "t1:b", 60, asker) == CallRefused("over")
    assert await conversations.journal(mac) == cut
    assert await history(store, mac) == [TURN[0]]


async def test_history_is_bounded(
    store: Store, remember: Callable[..., Awaitable[bool]], session: SessionRecord, mac: str
) -> None:
    lengths = []
    for number in range(LONGEST_HISTORY // len(TURN) + 20):
        await remember(f"t{number:032}", *TURN, at=number)
        lengths.append(len(await history(store, mac)))
    assert max(lengths) == LONGEST_HISTORY + 8
    assert min(lengths[LONGEST_HISTORY // len(TURN) :]) == LONGEST_HISTORY


async def test_the_oldest_messages_are_left_out_ten_at_once(
    store: Store, remember: Callable[..., Awaitable[bool]], session: SessionRecord, mac: str
) -> None:
    begins: list[int] = []
    for number in range(70):
        await remember(f"t{number:032}", Message("user", f"{2 * number}"), Message("assistant", "x"), at=number)
        known = await history(store, mac, 20)
        assert min(20, 2 * (number + 1)) <= len(known) < 30
        begins.append(int(known[0].text))
    assert sorted(set(begins)) == list(range(0, 130, 10)), "also where the kept history itself is cut"
    assert begins == sorted(begins)


async def test_tokens_are_kept_with_the_turn(
    conversations: Conversations, owner: Owner, begin: Begin, session: SessionRecord, mac: str
) -> None:
    await begin("t1")
    journal = StoredJournal("t1", "running", TURN[:1], 0, usage=TokenUsage(900, 800, 7))
    await conversations.record(owner, mac, journal)
    assert await conversations.journal(mac) == journal
    ended = replace(journal, state="written", usage=TokenUsage(1900, 1700, 14))
    await conversations.remember(owner, mac, ended, TURN)
    assert await conversations.journal(mac) == ended


async def test_the_journal_says_how_far_a_turn_got(
    conversations: Conversations, owner: Owner, begin: Begin, session: SessionRecord, mac: str
) -> None:
    assert await conversations.journal(mac) is None
    await begin("t1")
    journal = StoredJournal("t1", "running", TURN[:3], 1, "And")
    await conversations.record(owner, mac, journal)
    assert await conversations.journal(mac) == journal
    assert journal.written == (*TURN[:3], Message("assistant", "And"))
    # Whole messages are written once, not with every sentence.
    await conversations.record(owner, mac, StoredJournal("t1", "running", TURN, 2, "And so"), whole=False)
    assert await conversations.journal(mac) == replace(journal, sentences=2, partial="And so")


async def test_all_that_a_turn_needs_is_read_together(
    store: Store, owner: Owner, remember: Callable[..., Awaitable[bool]], session: SessionRecord, mac: str
) -> None:
    assert await Conversations(store, 60).context(mac, 20) == Context((), (), ())
    await ToolLists(store).write(owner, mac, [ToolSpec(name="self.x")], {"tep": "1"})
    await Reports(store).add(owner, mac, "battery 5 好")
    await remember("t1", *TURN)
    context = await Conversations(store, 60).context(mac, 20)
    assert [tool.name for tool in context.tools] == ["self.x"]
    assert context.history == TURN
    assert context.reports == (DeviceReport(0, "battery 5 好"),)


async def test_who_lost_the_shard_can_write_nothing(
    store: Store, begin: Begin, session: SessionRecord, mac: str
) -> None:
    conversations, journal = Conversations(store, 60), StoredJournal("t1", "running", TURN, 1)
    await begin("t1")
    for write in (
        begin("t1", owner=LOST),
        begin("t2", at=1, owner=LOST),
        conversations.record(LOST, mac, journal),
        conversations.remember(LOST, mac, journal, TURN),
        CallTable(store).begin(mac, "t1:c", 60, CallingTurn(LOST, "t1")),
        Reports(store).add(LOST, mac, "x"),
    ):
        with pytest.raises(Fenced):
            await write
    assert await conversations.context(mac, 20) == Context((), (), ())
    assert await conversations.journal(mac) == StoredJournal("t1", "running", TURN[:1], 0)
