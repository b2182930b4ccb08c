import pytest

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.sessions.asks import Asks
from fleet.adapters.redis.sessions.conversations import Begun, Conversations, Opening
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.consent import Ask
from fleet.core.ports import Message, ToolCall
from fleet.ground.errors import Fenced

MAC = "aa:bb:cc:dd:ee:ff"
ASK = Ask("t1", "", "self.reboot", ToolCall("c1", "reboot", "{}"), "restart")


async def begin(store: Store, owner: Owner, turn: str, entry: int) -> Ask | None:
    conversations = Conversations(store, 60)
    journal = await conversations.journal(MAC)
    if journal and journal.state == "running" and journal.turn != turn:
        await conversations.remember(owner, MAC, journal.__class__(journal.turn, "cut", journal.messages, 0), ())
    begun = await conversations.begin(
        owner, MAC, Opening("", turn, Message("user", "x"), f"9999999999999-{entry}"), 60, 9
    )
    assert isinstance(begun, Begun), begun
    return begun.asked


async def test_a_waiting_call_is_found_by_the_next_turn_only_however_often_that_is_taken_up(
    store: Store, owner: Owner
) -> None:
    assert await begin(store, owner, "t1", 1) is None
    await Asks(store).keep(owner, MAC, ASK)
    assert [await begin(store, owner, "t2", 2) for _ in range(3)] == [ASK] * 3
    assert await begin(store, owner, "t3", 3) is None


async def test_it_is_kept_under_the_fence_and_for_the_newest_turn(store: Store, owner: Owner) -> None:
    await begin(store, owner, "t1", 1)
    with pytest.raises(Fenced):
        await Asks(store).keep(Owner(owner.worker, "0"), MAC, ASK)
    await begin(store, owner, "t2", 2)
    with pytest.raises(Fenced):
        await Asks(store).keep(owner, MAC, ASK)
