from typing import Any

import pytest

from fleet.core.ports import Message, ToolCall
from fleet.core.reports import Report
from fleet.errors import Fenced
from fleet.store.connect import Store
from fleet.store.conversations import LONGEST_HISTORY, Context, Conversations, Journal
from fleet.store.owner import Owner
from fleet.store.reports import Reports
from fleet.store.sessions import Session, Sessions
from fleet.store.tools import ToolLists
from fleet.wire.mcp import ToolSpec
from fleet.wire.words import AudioFormat

TURN = (
    Message("user", "set it to 30"),
    Message("assistant", "", (ToolCall("c", "volume", '{"volume":30}'),)),
    Message("tool", "true", call_id="c"),
    Message("assistant", "好的。"),
)
LOST = Owner("another", "1")


@pytest.fixture
async def session(store: Store, owner: Owner, mac: str) -> Session:
    one = Session("s1", mac, "xiaozhi", "e1", 7, "0" * 32, AudioFormat(16000, 60), AudioFormat(24000, 60))
    await Sessions(store).open(owner, one)
    return one


async def remember(store: Store, owner: Owner, mac: str, turn: str, *lines: Message) -> bool:
    """Run a turn that leaves these messages in the history."""
    conversations = Conversations(store, 60)
    await conversations.begin(owner, mac, "s1", turn, lines[0])
    return await conversations.remember(owner, mac, Journal(turn, "written", lines, 1), lines)


async def history(store: Store, mac: str, most: int = 1000) -> list[Message]:
    return list((await Conversations(store, 60).context(mac, most)).history)


async def test_a_turn_begins_once_and_only_in_the_live_session(
    store: Store, owner: Owner, session: Session, mac: str
) -> None:
    conversations = Conversations(store, 60)
    assert await conversations.begin(owner, mac, "other", "t1", TURN[0]) == "gone"
    assert await conversations.begin(owner, mac, "s1", "t1", TURN[0]) == session
    assert await conversations.begin(owner, mac, "s1", "t1", TURN[0]) == "again"
    assert await conversations.begin(owner, mac, "s1", "t2", TURN[0]) == session
    assert await conversations.journal(mac) == Journal("t2", "running", TURN[:1], 0)


async def test_a_beginning_that_the_client_library_repeats_is_one(
    store: Store, owner: Owner, session: Session, mac: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = Store.call

    async def twice(self: Store, *args: Any) -> list[str]:
        await call(self, *args)
        return await call(self, *args)

    monkeypatch.setattr(Store, "call", twice)
    assert await Conversations(store, 60).begin(owner, mac, "s1", "t1", TURN[0]) == session


async def test_a_turn_keeps_its_session_alive(store: Store, owner: Owner, session: Session, mac: str) -> None:
    await store.client.expire(store.keys.session(mac), 5)
    await Conversations(store, 60).begin(owner, mac, "s1", "t1", TURN[0])
    assert await store.client.ttl(store.keys.session(mac)) > 5


async def test_history_comes_back_oldest_first(store: Store, owner: Owner, session: Session, mac: str) -> None:
    assert await remember(store, owner, mac, "t1", *TURN)
    assert await history(store, mac, 10) == list(TURN)
    assert await history(store, mac, 2) == list(TURN[2:])
    assert await history(store, mac, 0) == []
    assert 0 < await store.client.ttl(store.keys.history(mac)) <= 60


async def test_what_a_turn_remembers_again_takes_the_place_of_what_it_did_before(
    store: Store, owner: Owner, session: Session, mac: str
) -> None:
    await remember(store, owner, mac, "t1", *TURN)
    await remember(store, owner, mac, "t2", *TURN)
    conversations, cut = Conversations(store, 60), Message("assistant", "cut")
    for _ in range(2):
        assert await conversations.remember(owner, mac, Journal("t2", "cut", TURN, 1), (TURN[0], cut))
    assert await history(store, mac) == [*TURN, TURN[0], cut]
    assert await conversations.journal(mac) == Journal("t2", "cut", TURN, 0)


async def test_a_turn_that_is_not_the_newest_changes_nothing(
    store: Store, owner: Owner, session: Session, mac: str
) -> None:
    await remember(store, owner, mac, "t1", *TURN)
    await remember(store, owner, mac, "t2", *TURN)
    assert not await Conversations(store, 60).remember(owner, mac, Journal("t1", "cut", TURN, 1), TURN)
    assert len(await history(store, mac)) == 2 * len(TURN)


async def test_history_is_bounded(store: Store, owner: Owner, session: Session, mac: str) -> None:
    for number in range(LONGEST_HISTORY // len(TURN) + 2):
        await remember(store, owner, mac, f"t{number}", *TURN)
    assert len(await history(store, mac)) == LONGEST_HISTORY


async def test_the_journal_says_how_far_a_turn_got(store: Store, owner: Owner, mac: str) -> None:
    conversations = Conversations(store, 60)
    assert await conversations.journal(mac) is None
    journal = Journal("t1", "running", TURN[:2], 1)
    await conversations.record(owner, mac, journal)
    assert await conversations.journal(mac) == journal


async def test_all_that_a_turn_needs_is_read_together(store: Store, owner: Owner, session: Session, mac: str) -> None:
    assert await Conversations(store, 60).context(mac, 20) == Context((), (), ())
    await ToolLists(store).write(mac, [ToolSpec(name="self.x")], {"tep": "1"})
    await Reports(store).add(owner, mac, "battery 5 好")
    await remember(store, owner, mac, "t1", *TURN)
    context = await Conversations(store, 60).context(mac, 20)
    assert [tool.name for tool in context.tools] == ["self.x"]
    assert context.history == TURN
    assert context.reports == (Report(0, "battery 5 好"),)


async def test_who_lost_the_shard_can_write_nothing(store: Store, owner: Owner, session: Session, mac: str) -> None:
    conversations, journal = Conversations(store, 60), Journal("t1", "running", TURN, 1)
    for write in (
        conversations.begin(LOST, mac, "s1", "t1", TURN[0]),
        conversations.record(LOST, mac, journal),
        conversations.remember(LOST, mac, journal, TURN),
        Reports(store).add(LOST, mac, "x"),
    ):
        with pytest.raises(Fenced):
            await write
    assert await conversations.context(mac, 20) == Context((), (), ())
