"""What was said: found, read, deleted, and bounded in time; on both kinds of database."""

import json
from typing import Any

import pytest
from sqlalchemy import insert

from fleet.adapters.sql.conversation_rows import SEARCHED, ConversationQuery, ConversationRows
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.event_rows import EventLog, EventRows, NewEvent
from fleet.adapters.sql.schema import TENANT
from fleet.adapters.sql.usage_rows import UsageRows
from fleet.core.usage import day_of
from fleet.roles.control.leader.history_limits import HistorySweeper, Lives

MAC, OTHER = "aa:bb:cc:00:00:01", "aa:bb:cc:00:00:02"
DAY = 86_400_000
BEGAN = 1_700_000_000_000


class History:
    """Stores turns as control does."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.rows = EventRows(database, 1)
        self.at = BEGAN

    async def say(self, turn: str, user: str, answer: str = "", *, mac: str = MAC, **more: Any) -> None:
        self.at += 1000
        data = json.dumps({"turn": turn, "user": user, "answer": answer, "session": turn[:2], **more})
        await self.rows.store([NewEvent(0, "1-0", self.at, "turn.answered", mac, data)], {})


@pytest.fixture
async def history(database: Database) -> History:
    one = History(database)
    await one.rows.begin()
    async with database.writing() as connection:
        await connection.execute(insert(TENANT).values(id=2, slug="other", name="Other", created=0))
    return one


async def found(database: Database, wanted: ConversationQuery, most: int = 50, tenant: int = 1) -> list[list[str]]:
    """Return the sessions of all pages."""
    rows, pages, below = ConversationRows(database, tenant), [], None
    while True:
        page, below = await rows.page(wanted, below, most)
        pages.append([row.session for row in page])
        if below is None:
            return pages


async def test_conversations_are_listed_and_searched(history: History, database: Database) -> None:
    for number in range(5):
        await history.say(f"s{number}-1", f"Question {number}", "Answer", agent="a" if number % 2 else "b")
        await history.say(f"s{number}-2", "Wie spät ist es?", "现在三点 100%")
    await history.say("t0-1", "elsewhere", mac=OTHER)
    everything = ConversationQuery()
    assert await found(database, everything, 4) == [["t0", "s4", "s3", "s2"], ["s1", "s0"]]
    assert await found(database, everything, tenant=2) == [[]]
    for wanted, sessions in (
        (ConversationQuery(mac=OTHER), ["t0"]),
        (ConversationQuery(agent="a"), ["s3", "s1"]),
        (ConversationQuery(since=BEGAN + 10_000), ["t0", "s4"]),
        (ConversationQuery(before=BEGAN + 2_000), ["s0"]),
        (ConversationQuery(words="QUESTION 3"), ["s3"]),
        (ConversationQuery(words="SPÄT", agent="a"), ["s3", "s1"]),
        (ConversationQuery(words="三点", mac=MAC), ["s4", "s3", "s2", "s1", "s0"]),
        (ConversationQuery(words="0%"), ["s4", "s3", "s2", "s1", "s0"]),
        (ConversationQuery(words="_"), []),
    ):
        assert [one for page in await found(database, wanted) for one in page] == sessions, wanted
    pages = await found(database, ConversationQuery(words="wie spät"), 2)
    assert [one for page in pages for one in page] == ["s4", "s3", "s2", "s1", "s0"]
    assert SEARCHED >= 1000


async def test_conversations_of_one_batch_are_listed_by_their_begin(history: History, database: Database) -> None:
    def data(session: str, number: int) -> str:
        return json.dumps({"turn": f"{session}-{number}", "user": "u", "session": session})

    turns = ("s0", "s1", "s0", "s2")
    events = [
        NewEvent(0, "1-0", BEGAN + at, "turn.answered", MAC, data(session, at)) for at, session in enumerate(turns)
    ]
    await history.rows.store(events, {})
    assert await found(database, ConversationQuery()) == [["s2", "s1", "s0"]]


async def test_a_conversation_is_read_and_deleted_by_its_tenant_only(history: History, database: Database) -> None:
    await history.say("s1-1", "One")
    await history.say("s1-2", "Two")
    own, stranger = ConversationRows(database, 1), ConversationRows(database, 2)
    ((row,), _) = await own.page(ConversationQuery(), None, 1)
    assert (row.turns, row.ended - row.started) == (2, 1000)
    turns = await own.turns(row.id)
    assert [turn.question for turn in turns] == ["One", "Two"]
    assert [turn.question for turn in await own.turns(row.id, turns[0].id)] == ["Two"]
    assert await stranger.read(row.id) is None and await stranger.turns(row.id) == []
    assert not await stranger.delete(row.id) and await own.delete(row.id)
    assert await own.read(row.id) is None and await own.turns(row.id) == []


async def test_a_devices_data_is_erased_and_nothing_else(history: History, database: Database) -> None:
    await history.say("s1-1", "One")
    await history.say("s2-1", "Two", mac=OTHER)
    assert await ConversationRows(database, 2).erase(MAC) == {"conversations": 0, "events": 0, "usage": 0}
    assert await ConversationRows(database, 1).erase(MAC) == {"conversations": 1, "events": 1, "usage": 1}
    assert await found(database, ConversationQuery()) == [["s2"]]
    assert [one.kind for one in await EventLog(database).after(0, 10)] == ["turn.answered"]
    (left,) = await UsageRows(database, 1).sums((), 0, day_of(history.at))
    assert left["turns"] == 1


async def test_what_is_too_old_is_deleted(history: History, database: Database) -> None:
    await history.say("s1-1", "One")
    history.at += 10 * DAY
    await history.say("s2-1", "Two")
    log, lives = EventLog(database), Lives(events=5, conversations=20, usage=20)
    assert await HistorySweeper(database, lives).sweep(history.at) == 1
    assert await log.ends() == (2, 2)
    assert await found(database, ConversationQuery()) == [["s2", "s1"]]
    assert await HistorySweeper(database, Lives(5, 5, 5)).sweep(history.at) == 2
    assert await found(database, ConversationQuery()) == [["s2"]]
    # Of an empty log it is still known where it ended.
    await HistorySweeper(database, Lives(0, 0, 0)).sweep(history.at + DAY)
    assert await log.ends() == (3, 2)
