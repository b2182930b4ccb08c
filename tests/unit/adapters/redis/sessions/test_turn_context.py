"""What a turn reads of its device; tests/integration/redis/test_conversations.py has the rest, over real servers."""

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.sessions.conversations import Begun, Conversations, Opening, StoredJournal
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.ports import Message

MAC, TURN = "aa:bb:cc:dd:ee:ff", (Message("user", "hi"), Message("assistant", "hello"))


async def test_the_beginning_of_a_turn_brings_what_a_later_look_finds(store: Store, owner: Owner) -> None:
    conversations = Conversations(store, 60)

    async def begin(turn: str, entry: str, history: int) -> Begun:
        begun = await conversations.begin(owner, MAC, Opening("", turn, TURN[0], entry), 60, history)
        assert isinstance(begun, Begun)
        return begun

    first = await begin("t1", "9999999999999-1", 9)
    assert first.context and first.context.history == ()
    await conversations.remember(owner, MAC, StoredJournal("t1", "written", TURN, 1), TURN)
    second = await begin("t2", "9999999999999-2", 9)
    assert second.context and second.context.history == TURN
    assert second.context == await conversations.context(MAC, 9)
    # Also where another worker takes the turn up.
    again = await begin("t2", "9999999999999-2", 0)
    assert again.journal and again.context == await conversations.context(MAC, 0)
