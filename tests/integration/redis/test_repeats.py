"""Whatever the store sends may be done twice: after a fault nobody knows whether it was done once (docs/adr/0007)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from fleet.adapters.redis.client import client, cluster
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.devices.tools import ToolLists
from fleet.adapters.redis.sessions.calls import CallBegun, CallKnown, CallTable
from fleet.adapters.redis.sessions.conversations import Begun, Conversations, Opening, StoredJournal
from fleet.adapters.redis.sessions.gateway_sessions import GatewaySessions
from fleet.adapters.redis.sessions.sessions import Opened, SessionRecord, Sessions
from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.adapters.redis.shards.leases import Leases
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.ports import Message
from fleet.wire.edge_messages import AnswerDoneEvent, SpeakSentenceCommand
from fleet.wire.mcp import ToolSpec
from fleet.wire.messages import AudioFormat


@pytest.fixture
def store(server_store: Store) -> Store:
    """What is tested here is below the commands, so the Redis in memory does not have it."""
    return server_store


LIMIT = 240


@pytest.fixture
async def doubled(store: Store, owner: Owner, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[str]]:
    """Lets every command be done, and its answer be lost the first time; the names of what was done twice."""
    twice: list[str] = []

    def losing(send: Callable[..., Awaitable[Any]], name: Callable[..., str]) -> Callable[..., Awaitable[Any]]:
        lost = False

        async def once(*args: Any, **options: Any) -> Any:
            nonlocal lost
            answer = await send(*args, **options)
            what = name(*args)
            if what == "CLUSTER SLOTS":
                return answer
            lost = not lost
            if lost:
                twice.append(what)
                raise RedisConnectionError("the answer was lost")
            return answer

        return once

    def first(_: object, *words: object) -> str:
        return str(words[1]).removesuffix(f"_{store.functions.mark}") if words[0] == "FCALL" else str(words[0])

    single = losing(client.execute, first)
    monkeypatch.setattr(client, "execute", single)
    quick = losing(client.quick, first)

    async def answers(one: client.ServerClient, words: Sequence[Any]) -> list[Any]:
        return [await quick(one, *words)]

    monkeypatch.setattr(client, "quick", quick)
    monkeypatch.setattr(client.ServerClient, "send", lambda one, words: asyncio.create_task(answers(one, words)))
    monkeypatch.setattr(cluster, "execute", single)
    for kind in (client.ServerClient, cluster.ClusterClient):
        send = kind._send
        monkeypatch.setattr(
            kind, "_send", losing(send, lambda _, commands: "+".join(words[0] for words, _ in commands))
        )
    yield twice


def session(mac: str) -> SessionRecord:
    return SessionRecord("s1", mac, "xiaozhi", "e1", 7, "0" * 32, AudioFormat(16000, 60), AudioFormat(24000, 60))


async def test_a_call_is_begun_and_ended_once(store: Store, doubled: list[str], mac: str) -> None:
    calls = CallTable(store)
    go = await calls.begin(mac, "t:c", 60)
    assert isinstance(go, CallBegun)
    assert await calls.begin(mac, "t:c", 60) == CallKnown(go.id, "pending", "")
    assert await calls.complete(mac, str(go.id), "answer")
    assert not await calls.complete(mac, str(go.id), "answer")
    other = await calls.begin(mac, "t:d", 60)
    assert isinstance(other, CallBegun)
    assert await calls.give_up(mac, other.id, sent=True)
    assert not await calls.complete(mac, str(other.id), "late")
    assert calls.ignored == {"late": 1, "repeated": 1}
    assert await calls.late(mac, other.id) == "late"
    assert await store.client.hget(store.keys.device(mac), "np") == "0"
    assert {"fleet_call_begin", "fleet_call_finish"} <= set(doubled)


async def test_an_overdue_call_is_swept_once(store: Store, doubled: list[str], mac: str) -> None:
    calls = CallTable(store)
    go = await calls.begin(mac, "t:c", 0.001)
    assert isinstance(go, CallBegun)
    async with asyncio.timeout(LIMIT):
        while (await calls.begin(mac, "t:c", 60)) == CallKnown(go.id, "pending", ""):
            # Who sweeps is not told of it twice, and not at all when the answer is lost; nobody depends on it.
            await calls.sweep(store.keys.shard(mac))
    assert await store.client.hget(store.keys.device(mac), "np") == "0"
    assert "fleet_sweep" in doubled


async def test_a_lease_is_taken_and_given_back_once(store: Store, doubled: list[str]) -> None:
    leases = Leases(store, "w", 60)
    owner = await leases.take(5)
    assert owner is not None and await leases.take(5) == owner
    assert [peer.worker for peer in await leases.announce(3)] == ["w"]
    await leases.release(5)
    await leases.retire()
    assert await Leases(store, "other", 60).take(5) is not None
    assert {"fleet_lease", "fleet_release", "fleet_announce", "fleet_retire"} <= set(doubled)


async def test_an_entry_that_was_written_twice_is_read_once(store: Store, doubled: list[str], mac: str) -> None:
    boxes = Inboxes(store)
    for number in range(3):
        await boxes.to_shard(3, AnswerDoneEvent(device=mac, session="s", turn=str(number)))
        await boxes.to_edge("e", SpeakSentenceCommand(device=mac, session="s", turn="t", index=number, text="x"))
    entries = await boxes.read_shards({3: "0"})
    assert len(entries) == 6
    assert [entry.event.turn for entry in entries if isinstance(entry.event, AnswerDoneEvent)] == ["0", "1", "2"]
    # Another owner of the shard knows no more than what it reads.
    assert sum(entry.event is not None for entry in await Inboxes(store).read_shards({3: "0"})) == 3
    # The same entries read again, as after a new lease, are no doubles.
    assert sum(entry.event is not None for entry in await boxes.read_shards({3: "0"})) == 3
    await boxes.discard(entries)
    assert await boxes.read_shards({3: "0"}) == []
    async with asyncio.timeout(LIMIT):
        commands = [await anext(boxes.read_edge("e")) for _ in range(3)]
    assert [sentence.index for sentence in commands if isinstance(sentence, SpeakSentenceCommand)] == [0, 1, 2]
    assert {"XADD", "XADD+EXPIRE"} <= set(doubled)


async def test_sessions_and_devices_are_as_if_once(store: Store, owner: Owner, doubled: list[str], mac: str) -> None:
    sessions, devices, tools = Sessions(store), Devices(store), ToolLists(store)
    await devices.describe(mac, {"board": "b"})
    assert (await devices.appear(mac, online=True, epoch=5)).applied
    await tools.write(owner, mac, [ToolSpec(name="self.x")], {"tep": "5"})
    # Its own session as the one that it replaced, on its own edge: nobody is told to forget anything.
    assert await sessions.open(owner, session(mac)) == Opened("s1", "e1", tools_known=True)
    assert await sessions.read(mac) == session(mac)
    await sessions.keep(mac)
    await sessions.close(owner, mac, "s1")
    assert await sessions.read(mac) is None
    assert {"fleet_hello", "fleet_goodbye", "fleet_presence", "fleet_tool_list", "HSET+EXPIRE"} <= set(doubled)


async def test_histories_are_as_if_once(store: Store, owner: Owner, doubled: list[str], mac: str) -> None:
    conversations = Conversations(store, 60)
    await Sessions(store).open(owner, session(mac))
    asked, answered = Message("user", "hello"), Message("assistant", "Hi.")
    begun = await conversations.begin(owner, mac, Opening("s1", "t1", asked, "1-1"), 60, 9)
    assert isinstance(begun, Begun)
    assert (begun.session.id, begun.journal, begun.late) == ("s1", None, True)
    await conversations.record(owner, mac, StoredJournal("t1", "running", (asked, answered), 1))
    journal = StoredJournal("t1", "written", (asked, answered), 1)
    assert await conversations.remember(owner, mac, journal, (asked, answered))
    assert (await conversations.context(mac, 10)).history == (asked, answered)
    assert await conversations.journal(mac) == journal
    assert {"fleet_turn_begin", "fleet_turn_record", "fleet_remember", "fleet_turn_context"} <= set(doubled)


async def test_a_gateways_session_is_as_if_once(store: Store, doubled: list[str]) -> None:
    now, sessions = datetime.now(UTC), GatewaySessions(store, 60)
    begun = await sessions.begin(now)
    found = await sessions.read(begun.id, now)
    assert found == begun
    assert "fleet_gateway_session" in doubled


async def test_edges_are_as_if_once(store: Store, doubled: list[str]) -> None:
    edges, one = Edges(store), EdgeRecord("e1", "h", 1, 2)
    await edges.announce(one)
    assert await edges.live() == [one]
    await edges.retire("e1")
    assert await edges.live() == []
    assert {"HSET+EXPIRE+SADD+EXPIRE", "DEL+SREM"} <= set(doubled)
