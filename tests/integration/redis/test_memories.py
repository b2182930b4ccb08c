import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from fleet.adapters.redis.access.admissions import Admissions
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices import forgetting
from fleet.adapters.redis.devices import memories as module
from fleet.adapters.redis.devices.forgetting import forget
from fleet.adapters.redis.devices.memories import MOST_ATTEMPTS, EndedConversation, Memories
from fleet.adapters.redis.keys import DEVICE_SECONDS
from fleet.adapters.redis.sessions.conversations import Begun, Conversations, Opening, StoredJournal
from fleet.adapters.redis.sessions.sessions import SessionRecord, Sessions
from fleet.adapters.redis.shards.leases import Leases
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.memory import LARGEST, MOST, MemoryChanges
from fleet.core.ports import Message
from fleet.ground.errors import Fenced
from fleet.wire.messages import AudioFormat
from tests.support.redis_server import RedisServer

TURN = (Message("user", "I am Anna"), Message("assistant", "Hello Anna."))
LOST = Owner("another", "1")
OTHER = "aa:bb:cc:dd:ee:00"

Talk = Callable[..., Awaitable[None]]


@pytest.fixture
def memories(store: Store) -> Memories:
    return Memories(store)


@pytest.fixture
def talk(store: Store, owner: Owner, mac: str) -> Talk:
    """Runs a turn in the device's session."""

    async def one(turn: str, *lines: Message, remembers: bool = True, seconds: int = 3600) -> None:
        audio = AudioFormat(16000, 60)
        session = SessionRecord("s1", mac, "xiaozhi", "e1", 7, "0" * 32, audio, replace(audio, sample_rate=24000))
        await Sessions(store).open(owner, session)
        entry = str(await store.client.xadd(store.keys.inbox(store.keys.shard(mac)), {"m": ""}))
        conversations = Conversations(store, seconds, remembers=remembers)
        begun = await conversations.begin(owner, mac, Opening("s1", turn, lines[0], entry), 60, 9)
        assert isinstance(begun, Begun)
        assert await conversations.remember(owner, mac, StoredJournal(turn, "written", lines, 1), lines)

    return one


async def due(store: Store, mac: str) -> float | None:
    """Return in how many seconds the device's conversation is due; None if it is not noted."""
    at = await store.client.zscore(store.keys.conversations(store.keys.shard(mac)), mac)
    return None if at is None else at / 1000 - time.time()


async def make_due(store: Store, mac: str) -> None:
    assert await store.client.zadd(store.keys.conversations(store.keys.shard(mac)), {mac: 1}, xx=True) == 0


async def claim(store: Store, owner: Owner, mac: str) -> list[EndedConversation]:
    return await Memories(store).claim(owner, store.keys.shard(mac), 10)


async def test_facts_are_added_and_removed(store: Store, memories: Memories, owner: Owner, mac: str) -> None:
    assert await memories.read(mac) == ()
    assert await memories.change(owner, mac, MemoryChanges(("a", "她", "a"))) == 2
    assert await memories.change(owner, mac, MemoryChanges(("b", "a"), ("她", "unknown"))) == 2
    assert await memories.read(mac) == ("a", "b")
    assert (await Conversations(store, 60).context(mac, 10)).facts == ("a", "b")
    assert await memories.read(OTHER) == ()
    assert 0 < await store.client.ttl(store.keys.memory(mac)) <= DEVICE_SECONDS


async def test_what_has_no_room_is_not_added_and_nothing_else_is_lost(
    memories: Memories, owner: Owner, mac: str
) -> None:
    facts = tuple(f"{number:03}" for number in range(MOST))
    assert await memories.change(owner, mac, MemoryChanges((*facts, "too many"))) == MOST
    assert await memories.read(mac) == facts
    assert await memories.clear(mac) == MOST
    large = "好" * (LARGEST // 6)
    assert await memories.change(owner, mac, MemoryChanges((large, f"{large[:-2]}…", "too large", "x"))) == 3
    assert await memories.read(mac) == (large, f"{large[:-2]}…", "x")


async def test_facts_prolong_their_life_when_they_are_used(
    store: Store, memories: Memories, owner: Owner, mac: str
) -> None:
    await memories.change(owner, mac, MemoryChanges(("a",)))
    await store.client.expire(store.keys.memory(mac), 60)
    await Conversations(store, 60).context(mac, 10)
    assert await store.client.ttl(store.keys.memory(mac)) > 60


async def test_who_lost_the_shard_neither_changes_nor_claims(
    store: Store, memories: Memories, owner: Owner, talk: Talk, mac: str
) -> None:
    await talk("t1", *TURN)
    await make_due(store, mac)
    with pytest.raises(Fenced):
        await memories.change(LOST, mac, MemoryChanges(("a",)))
    with pytest.raises(Fenced):
        await claim(store, LOST, mac)
    assert await memories.read(mac) == ()
    assert len(await claim(store, owner, mac)) == 1


async def test_a_conversation_is_due_after_its_session_else_before_its_history_expires(
    store: Store, owner: Owner, talk: Talk, mac: str
) -> None:
    await talk("t1", *TURN)
    assert 3300 < (await due(store, mac) or 0) < 3600
    assert await claim(store, owner, mac) == []
    await Sessions(store).close(owner, mac, "s1", "device")
    assert 0 < (await due(store, mac) or 0) < 10


async def test_nothing_is_noted_without_words_or_with_the_memory_off(store: Store, talk: Talk, mac: str) -> None:
    await talk("t1", *TURN, remembers=False)
    await talk("t2", Message("user", " "), Message("assistant", "Hello."))
    assert await due(store, mac) is None


async def test_a_conversation_is_remembered_once(
    store: Store, memories: Memories, owner: Owner, talk: Talk, mac: str
) -> None:
    await talk("t1", Message("user", "before"), Message("assistant", "the memory was on"), remembers=False)
    await talk("t2", *TURN)
    await talk("t3", Message("user", "bye"), Message("assistant", "Bye."))
    await make_due(store, mac)
    [ended] = await claim(store, owner, mac)
    assert (ended.mac, ended.length) == (mac, 4)
    assert [message.text for message in await memories.messages(ended)] == ["I am Anna", "Hello Anna.", "bye", "Bye."]
    assert await claim(store, owner, mac) == []
    assert await memories.change(owner, mac, MemoryChanges(("Anna",)), ended.token) == 1
    assert await memories.change(owner, mac, MemoryChanges(("again",)), ended.token) is None
    assert await due(store, mac) is None
    assert await memories.read(mac) == ("Anna",)
    await talk("t4", *TURN)
    await make_due(store, mac)
    assert [one.length for one in await claim(store, owner, mac)] == [2], "only what is new"


async def test_a_claim_that_nobody_answered_is_made_once_more(
    store: Store, memories: Memories, owner: Owner, talk: Talk, mac: str
) -> None:
    await talk("t1", *TURN)
    tokens = set()
    for _ in range(MOST_ATTEMPTS):
        await make_due(store, mac)
        begun = time.time()
        [ended] = await claim(store, owner, mac)
        tokens.add(ended.token)
        again = await store.client.zscore(store.keys.conversations(store.keys.shard(mac)), mac) or 0
        assert begun - 0.002 <= again / 1000 - module.AGAIN_SECONDS <= time.time()
        # The end of the session does not call for another one meanwhile.
        await Sessions(store).close(owner, mac, "s1", "device")
        assert await store.client.zscore(store.keys.conversations(store.keys.shard(mac)), mac) == again
    await make_due(store, mac)
    assert await claim(store, owner, mac) == []
    assert await due(store, mac) is None
    assert await memories.change(owner, mac, MemoryChanges(("late",)), ended.token) is None


async def test_a_new_turn_withdraws_the_claim_and_its_conversation_has_both(
    store: Store, memories: Memories, owner: Owner, talk: Talk, mac: str
) -> None:
    await talk("t1", *TURN)
    await make_due(store, mac)
    [first] = await claim(store, owner, mac)
    await talk("t2", Message("user", "no, Eva"), Message("assistant", "Eva."))
    assert await memories.change(owner, mac, MemoryChanges(("Anna",)), first.token) is None
    await make_due(store, mac)
    [second] = await claim(store, owner, mac)
    assert [message.text for message in await memories.messages(second)][::2] == ["I am Anna", "no, Eva"]


async def test_a_correction_of_the_last_turn_changes_what_is_remembered_and_not_when(
    store: Store, memories: Memories, owner: Owner, talk: Talk, mac: str
) -> None:
    long = (*TURN, Message("assistant", "And more."))
    await talk("t1", *long)
    await make_due(store, mac)
    cut = StoredJournal("t1", "cut", long, 1)
    assert await Conversations(store, 3600, remembers=True).remember(owner, mac, cut, TURN)
    [ended] = await claim(store, owner, mac)
    assert await memories.messages(ended) == TURN


@pytest.mark.parametrize("change", ["unbind", "bind another", "forget", "clear"])
async def test_nothing_is_left_for_the_next_owner(
    store: Store,
    memories: Memories,
    owner: Owner,
    talk: Talk,
    mac: str,
    change: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # No worker has anything left to write about the device.
    monkeypatch.setattr(forgetting, "_SETTLED_SECONDS", 0.0)
    await Admissions(store).bind(mac, "client-1")
    await talk("t1", *TURN)
    await memories.change(owner, mac, MemoryChanges(("Anna",)))
    await make_due(store, mac)
    [ended] = await claim(store, owner, mac)
    await Admissions(store).bind(mac, "client-1")
    assert await memories.read(mac) == ("Anna",), "the owner is the same"
    match change:
        case "unbind":
            await Admissions(store).unbind(mac)
        case "bind another":
            await Admissions(store).bind(mac, "client-2")
        case "forget":
            await forget(store, [mac])
        case _:
            assert await memories.clear(mac) == 1
    assert await memories.read(mac) == ()
    assert await memories.change(owner, mac, MemoryChanges(("of the earlier owner",)), ended.token) is None
    assert await memories.read(mac) == ()
    history = (await Conversations(store, 60).context(mac, 10)).history
    assert (history == ()) is (change != "clear")
    await store.client.zadd(store.keys.conversations(store.keys.shard(mac)), {mac: 1})
    assert await claim(store, owner, mac) == []


async def test_an_operator_deletes_single_facts_and_finds_all_devices(
    store: Store, memories: Memories, owner: Owner, mac: str
) -> None:
    await memories.change(owner, mac, MemoryChanges(("a", "b", "c")))
    assert await memories.forget(mac, ["b", "unknown"]) == 1
    assert await memories.read(mac) == ("a", "c")
    assert await memories.all() == [mac]


@pytest.mark.usefixtures("patient")
async def test_facts_and_due_conversations_survive_a_restart(own_redis: RedisServer, mac: str) -> None:
    store = await Store.open(own_redis.url, 16)
    lease = await Leases(store, "w", 60).take(store.keys.shard(mac))
    assert lease is not None
    await Memories(store).change(lease, mac, MemoryChanges(("Anna",)))
    conversations = Conversations(store, 3600, remembers=True)
    opening = Opening("", "t1", TURN[0], "9999999999999-1")
    assert isinstance(await conversations.begin(lease, mac, opening, 60, 9), Begun)
    await conversations.remember(lease, mac, StoredJournal("t1", "written", TURN, 1), TURN)
    own_redis.kill()
    await asyncio.to_thread(own_redis.start)
    assert await Memories(store).read(mac) == ("Anna",)
    await make_due(store, mac)
    assert [one.length for one in await claim(store, lease, mac)] == [2]
    await store.close()
