from fleet.core.ports import Message, ToolCall
from fleet.store.connect import Store
from fleet.store.conversations import LONGEST_HISTORY, Conversations, Journal
from fleet.store.owner import Owner

TURN = (
    Message("user", "set it to 30"),
    Message("assistant", "", (ToolCall("c", "volume", '{"volume":30}'),)),
    Message("tool", "true", call_id="c"),
    Message("assistant", "好的。"),
)


async def test_history_comes_back_oldest_first(store: Store, owner: Owner, mac: str) -> None:
    conversations = Conversations(store, 60)
    await conversations.remember(owner, mac, TURN)
    assert await conversations.history(mac, 10) == list(TURN)
    assert await conversations.history(mac, 2) == list(TURN[2:])
    assert await conversations.history(mac, 0) == []


async def test_history_is_bounded(store: Store, owner: Owner, mac: str) -> None:
    conversations = Conversations(store, 60)
    for _ in range(LONGEST_HISTORY // len(TURN) + 2):
        await conversations.remember(owner, mac, TURN)
    assert await store.client.llen(store.keys.history(mac)) == LONGEST_HISTORY


async def test_the_journal_says_how_far_a_turn_got(store: Store, owner: Owner, mac: str) -> None:
    conversations = Conversations(store, 60)
    assert await conversations.journal(mac) is None
    journal = Journal("t1", "running", TURN[:2], 1)
    await conversations.record(owner, mac, journal)
    assert await conversations.journal(mac) == journal
