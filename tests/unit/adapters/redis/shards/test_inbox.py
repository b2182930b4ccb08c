import asyncio
from collections.abc import Mapping

import pytest

from fleet.adapters.redis import keys
from fleet.adapters.redis.client.client import Streams
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.inbox import READ_SECONDS, Inboxes
from fleet.wire.edge_messages import AnswerDoneEvent, CloseSessionCommand
from tests.support.virtual_time import elapse


def done(turn: str) -> AnswerDoneEvent:
    return AnswerDoneEvent(device="d", session="s", turn=turn)


def close(session: str) -> CloseSessionCommand:
    return CloseSessionCommand(device="d", session=session)


async def test_entries_are_read_in_order_from_where_the_reader_was(store: Store) -> None:
    inboxes = Inboxes(store)
    for turn in "abc":
        await inboxes.to_shard(0, done(turn))
    first, *rest = await inboxes.read_shards({0: "0"})
    assert first.event == done("a") and [entry.event for entry in rest] == [done("b"), done("c")]
    assert [entry.event for entry in await inboxes.read_shards({0: first.id})] == [done("b"), done("c")]
    await inboxes.discard([first, rest[0]])
    assert [entry.event for entry in await inboxes.read_shards({0: "0"})] == [done("c")]


async def test_a_reader_waits_for_what_comes_and_not_for_ever(store: Store) -> None:
    inboxes, clock = Inboxes(store), asyncio.get_running_loop().time
    begun = clock()
    assert await inboxes.read_shards({0: "0"}) == [] and 0 < clock() - begun < 2
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(inboxes.read_shards({0: "0"}))
        await elapse(0.1)
        await inboxes.to_shard(0, done("a"))
    assert [entry.event for entry in reading.result()] == [done("a")]


async def test_what_this_version_does_not_know_and_what_was_written_twice_is_none(store: Store) -> None:
    inboxes, inbox = Inboxes(store), store.keys.inbox(0)
    await inboxes.to_shard(0, done("a"))
    [(_, fields)] = await store.client.xrange(inbox)
    await store.client.xadd(inbox, fields)
    await store.client.xadd(inbox, {"m": '{"kind": "of the future"}'})
    assert [entry.event for entry in await inboxes.read_shards({0: "0"})] == [done("a"), None, None]


@pytest.mark.parametrize(
    "message",
    [
        "",
        "{",
        "[]",
        '{"device": "d", "session": "s", "turn": "t"}',
        '{"kind": "speech_done", "device": "d", "session": "s"}',
        '{"kind": "speech_done", "device": 1, "session": "s", "turn": "t"}',
        '{"kind": "speech_done", "device": "d", "session": "s", "turn": null}',
        '{"kind": "speech_done", "device": "d", "session": "s", "turn": "\\ud800"}',
        '{"kind": "speech_interrupted", "device": "d", "session": "s", "turn": "t", "spoken": "many"}',
        '{"kind": "session_silent", "device": "d", "session": "s", "reason": "of the future"}',
        '{"kind": "speech_done", "device": "d", "session": "s", "turn": "t"} {}',
        '{"kind": "speech_done", "more": ' + "[" * 10_000,
    ],
)
async def test_what_is_no_event_is_none_and_harms_no_other(store: Store, message: str) -> None:
    inboxes = Inboxes(store)
    await store.client.xadd(store.keys.inbox(0), {"m": message})
    await inboxes.to_shard(0, done("a"))
    assert [entry.event for entry in await inboxes.read_shards({0: "0"})] == [None, done("a")]


async def test_messages_that_come_often_are_read_several_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    inboxes, read_streams, clock, reads = Inboxes(store), store.reader.read_streams, asyncio.get_running_loop().time, 0
    written: dict[str, float] = {}
    late: dict[str, float] = {}

    async def count(after: Mapping[str, str], most: int, seconds: float) -> Streams:
        nonlocal reads
        reads += 1
        return await read_streams(after, most, seconds)

    async def read() -> None:
        async for command in inboxes.read_edge("e1"):
            late[command.session] = clock() - written[command.session]

    monkeypatch.setattr(store.reader, "read_streams", count)
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(read())
        for number in range(100):
            written[str(number)] = clock()
            await inboxes.to_edge("e1", close(str(number)))
            await elapse(0.001)
        await elapse(0.1)
        assert len(late) == 100 and reads < 20 and max(late.values()) <= 0.012
        for name in ("x", "y", "z"):
            written[name] = clock()
            await inboxes.to_edge("e1", close(name))
            await elapse(0.025)
        reading.cancel()
    assert max(late[name] for name in "xyz") < 0.001


async def test_a_second_reader_of_an_edge_goes_on_where_the_first_ended(store: Store) -> None:
    inboxes = Inboxes(store)
    await inboxes.to_edge("e1", close("a"), close("b"))
    commands = inboxes.read_edge("e1")
    assert [(await anext(commands)).session for _ in range(2)] == ["a", "b"]
    await inboxes.to_edge("e1", close("c"))
    assert (await anext(inboxes.read_edge("e1"))).session == "c"


async def test_the_inbox_of_an_edge_that_is_gone_expires(store: Store) -> None:
    inboxes = Inboxes(store)
    await inboxes.to_edge("e1", close("a"))
    await elapse(keys.EDGE_INBOX_SECONDS * 0.9)
    await inboxes.to_edge("e1", close("b"))
    await elapse(keys.EDGE_INBOX_SECONDS * 0.9)
    assert await store.client.exists(keys.edge_inbox("e1"))
    await elapse(keys.EDGE_INBOX_SECONDS)
    assert not await store.client.exists(keys.edge_inbox("e1"))


async def test_an_edge_deletes_what_it_has_read_and_misses_nothing(store: Store) -> None:
    inboxes, heard = Inboxes(store), list[str]()

    async def read() -> None:
        async for command in inboxes.read_edge("e1"):
            heard.append(command.session)

    async with asyncio.TaskGroup() as group:
        reading = group.create_task(read())
        await inboxes.to_edge("e1", close("a"), close("b"))
        await elapse(READ_SECONDS / 2)
        assert heard == ["a", "b"] and await store.client.xlen(keys.edge_inbox("e1")) == 2
        await elapse(READ_SECONDS)
        assert await store.client.xlen(keys.edge_inbox("e1")) == 0
        for number in range(100):
            await inboxes.to_edge("e1", close(str(number)))
            await elapse(READ_SECONDS / 20)
        assert heard == ["a", "b", *map(str, range(100))]
        assert 0 < await store.client.xlen(keys.edge_inbox("e1")) <= 30
        assert await store.client.ttl(keys.edge_inbox("e1")) > 0
        reading.cancel()


async def test_what_waits_is_counted_for_each_shard(store: Store) -> None:
    inboxes = Inboxes(store)
    for shard, turns in ((0, "ab"), (2, "c")):
        for turn in turns:
            await inboxes.to_shard(shard, done(turn))
    assert await inboxes.waiting(range(3)) == [2, 0, 1]
