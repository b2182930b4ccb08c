"""What time does to turns; tests/integration/redis/test_conversations.py has the rest, over real servers too."""

import pytest

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.sessions.conversations import (
    FRESH_SECONDS,
    MOST_RESUMES,
    Begun,
    Conversations,
    Opening,
    StoredJournal,
)
from fleet.adapters.redis.sessions.history_terms import HistoryTerms
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.ports import Message
from tests.support.memory_store import connection_of
from tests.support.virtual_time import elapse

MAC, ASKED = "aa:bb:cc:dd:ee:ff", Message("user", "hi")
KEPT = 1000


async def begin(store: Store, owner: Owner, turn: str = "t1", ago: float = 0.0) -> Begun:
    """Begin a turn whose entry was written so many seconds ago."""
    entry = f"{int((connection_of(store).redis.now() - ago) * 1000)}-0"
    begun = await Conversations(store, KEPT).begin(owner, MAC, Opening("", turn, ASKED, entry), 60, 9)
    assert isinstance(begun, Begun)
    return begun


async def test_an_utterance_of_just_now_is_answered(store: Store, owner: Owner) -> None:
    assert not (await begin(store, owner, ago=FRESH_SECONDS - 1)).late


async def test_an_utterance_of_long_ago_is_not_answered_any_more(store: Store, owner: Owner) -> None:
    assert (await begin(store, owner, ago=FRESH_SECONDS + 1)).late


async def test_a_turn_that_crashes_its_workers_is_not_taken_up_for_ever(store: Store, owner: Owner) -> None:
    assert (await begin(store, owner)).journal is None
    for _ in range(MOST_RESUMES):
        again = await begin(store, owner)
        assert again.journal and not again.late
    assert (await begin(store, owner)).late


async def test_a_turn_that_stood_still_for_too_long_is_not_taken_up(store: Store, owner: Owner) -> None:
    await begin(store, owner)
    await elapse(59)
    assert not (await begin(store, owner)).late
    await elapse(61)
    assert (await begin(store, owner)).late


async def test_a_history_is_kept_for_its_time_after_the_last_turn(store: Store, owner: Owner) -> None:
    conversations = Conversations(store, KEPT)
    await begin(store, owner)
    await conversations.remember(owner, MAC, StoredJournal("t1", "written", (ASKED,), 0), (ASKED,))
    await elapse(KEPT - 1)
    assert (await conversations.context(MAC, 9)).history == (ASKED,)
    await elapse(2)
    assert (await conversations.context(MAC, 9)).history == ()


@pytest.mark.parametrize(
    ("usual", "own", "noted"), [(True, None, 1), (False, None, 0), (True, False, 0), (False, True, 1)]
)
async def test_a_conversation_is_noted_for_the_memory_as_its_agent_says_else_as_usual(
    store: Store, owner: Owner, *, usual: bool, own: bool | None, noted: int
) -> None:
    terms = None if own is None else HistoryTerms(KEPT, remembers=own)
    await begin(store, owner)
    conversations = Conversations(store, KEPT, remembers=usual)
    await conversations.remember(owner, MAC, StoredJournal("t1", "written", (ASKED,), 0, terms=terms), (ASKED,))
    assert await store.client.zcard(store.keys.conversations(0)) == noted
