import asyncio
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from fleet.adapters.redis.devices.view import read_device_view
from fleet.adapters.redis.shards.edges import EdgeRecord
from fleet.ground.errors import Fenced
from fleet.roles.worker.sessions.opener import SessionOpener
from fleet.wire.edge_messages import CloseSessionCommand, OpenSessionCommand
from fleet.wire.messages import AudioFormat, HelloEvent
from tests.support.virtual_time import elapse
from tests.support.worker_stage import EDGE, MAC, WorkerStage, worker_stage

HELLO = HelloEvent(AudioFormat(16_000, 60), mcp=True)


@pytest.fixture
def opener(stage: WorkerStage) -> SessionOpener:
    return SessionOpener(stage.resources, stage.directory, stage.counts)


def kinds(stage: WorkerStage) -> list[Any]:
    return [message["type"] for message in stage.sent()]


async def test_the_edge_hears_of_a_session_before_the_device_does(stage: WorkerStage, opener: SessionOpener) -> None:
    known: list[int] = []
    publish = stage.session.publish

    def noted(topic: str, payload: bytes) -> None:
        known.append(len(stage.edge_commands()))
        publish(topic, payload)

    stage.session.publish, stage.connection.there = noted, 1.0  # type: ignore[method-assign]
    assert await opener.answer_hello(stage.shard, MAC, HELLO, "xiaozhi")
    [opened] = stage.edge_commands()
    [answer] = stage.sent()
    assert isinstance(opened, OpenSessionCommand)
    assert (answer["type"], answer["session_id"], answer["udp"]["key"]) == ("hello", opened.session, opened.key)
    assert known == [1], "the edge was sent its command first"


async def test_a_worker_that_may_have_lost_the_shard_meanwhile_says_nothing(
    stage: WorkerStage, opener: SessionOpener
) -> None:
    stage.connection.back = 1.0
    asyncio.get_running_loop().call_later(0.5, stage.shard.lease.end)
    with pytest.raises(Fenced):
        await opener.answer_hello(stage.shard, MAC, HELLO, "xiaozhi")
    assert await stage.resources.sessions.read(MAC), "Redis still took it for the owner"
    assert stage.sent() == []


async def test_a_worker_that_has_lost_the_shard_opens_nothing_on_the_edge(
    stage: WorkerStage, opener: SessionOpener
) -> None:
    stage.redis.run("HSET", stage.resources.store.keys.own(0), "f", "of another worker")
    with pytest.raises(Fenced):
        await opener.answer_hello(stage.shard, MAC, HELLO, "xiaozhi")
    assert stage.edge_commands() == stage.sent() == []


async def test_a_new_session_ends_the_old_one_on_another_edge(stage: WorkerStage, opener: SessionOpener) -> None:
    await stage.open("old", "edge-0")
    opened = await opener.answer_hello(stage.shard, MAC, HELLO, "xiaozhi")
    assert opened and (opened.old_session, opened.old_edge) == ("old", "edge-0")
    [closed] = stage.edge_commands("edge-0")
    assert isinstance(closed, CloseSessionCommand) and closed.session == "old"


async def test_two_sessions_never_share_a_key(stage: WorkerStage, opener: SessionOpener) -> None:
    for _ in range(2):
        await opener.answer_hello(stage.shard, MAC, HELLO, "xiaozhi")
    assert len({message["udp"]["key"] for message in stage.sent()}) == 2


async def test_without_an_edge_a_hello_is_refused_in_words_and_the_old_session_ends(
    stage: WorkerStage, opener: SessionOpener
) -> None:
    await stage.open("old", "edge-0")
    stage.directory.update([EdgeRecord(EDGE, "h", 1, 0, draining=True)], asyncio.get_running_loop().time())
    assert await opener.answer_hello(stage.shard, MAC, HELLO, "xiaozhi") is None
    assert kinds(stage) == ["hello", "goodbye"]
    assert await stage.resources.sessions.read(MAC) is None
    await elapse(1)
    assert kinds(stage) == ["hello", "goodbye", "alert"]
    assert stage.counts == {"hello: unavailable": 1}


async def test_while_redis_is_away_a_hello_is_refused(stage: WorkerStage, opener: SessionOpener) -> None:
    stage.connection.fault = RedisConnectionError("away")
    assert await opener.answer_hello(stage.shard, MAC, HELLO, "xiaozhi") is None
    assert kinds(stage) == ["hello", "goodbye"]


async def test_a_device_that_says_hello_again_and_again_is_answered_no_more(
    stage: WorkerStage, opener: SessionOpener
) -> None:
    for _ in range(40):
        await opener.answer_hello(stage.shard, MAC, HELLO, "xiaozhi")
    assert await stage.resources.sessions.read(MAC) is None, "its refused hellos ended the last one"
    before = len(stage.sent())
    assert await opener.answer_hello(stage.shard, MAC, HELLO, "xiaozhi") is None
    assert len(stage.sent()) == before and stage.counts["hello: too often"] > 3


async def test_a_device_that_is_not_admitted_gets_no_session() -> None:
    async with worker_stage(refused_devices=MAC) as stage:
        opener = SessionOpener(stage.resources, stage.directory, stage.counts)
        await stage.connect()
        await stage.open("old", "edge-0")
        assert await opener.answer_hello(stage.shard, MAC, HELLO, "xiaozhi") is None
        assert stage.edge_commands() == [] and stage.counts == {"hello: refused": 1}
        assert await stage.resources.sessions.read(MAC) is None, "the device ended it itself"
        assert [command.session for command in stage.edge_commands("edge-0")] == ["old"]
        await elapse(1)
        assert kinds(stage) == ["hello", "goodbye", "alert"]
        refused = (await read_device_view(stage.resources.store, MAC)).traces["refused"]
        assert refused.words == "the device is not admitted"


async def test_a_goodbye_of_the_server_is_sent_once_and_ends_the_session_on_its_edge(
    stage: WorkerStage, opener: SessionOpener
) -> None:
    await stage.open("s1")
    assert not await opener.say_goodbye(stage.shard, MAC, "another", "idle")
    assert await opener.say_goodbye(stage.shard, MAC, "s1", "idle")
    assert not await opener.say_goodbye(stage.shard, MAC, "s1", "idle")
    assert kinds(stage) == ["goodbye"]
    assert [command.kind for command in stage.edge_commands()] == ["session_closed"]


@pytest.mark.parametrize(("reason", "shown"), [("idle", []), ("leaving", ["alert"])])
async def test_who_may_have_spoken_while_the_edge_ended_gets_an_apology(
    stage: WorkerStage, opener: SessionOpener, reason: str, shown: list[str]
) -> None:
    await stage.open("s1")
    await opener.say_goodbye(stage.shard, MAC, "s1", reason)
    await elapse(1)
    assert kinds(stage) == ["goodbye", *shown]


async def test_a_session_whose_edge_died_ends_its_answer_and_itself(stage: WorkerStage, opener: SessionOpener) -> None:
    await stage.open("s1")
    assert await opener.end_lost(stage.shard, MAC, "s1", "xiaozhi")
    await elapse(1)
    assert kinds(stage) == ["tts", "goodbye", "alert"]


async def test_a_device_that_left_is_sent_nothing(stage: WorkerStage, opener: SessionOpener) -> None:
    await stage.open("s1")
    assert await opener.close(stage.shard, MAC, "s1")
    assert not await opener.close(stage.shard, MAC, "s1")
    assert stage.sent() == [] and len(stage.edge_commands()) == 1
    goodbye = (await read_device_view(stage.resources.store, MAC)).traces["goodbye"]
    assert goodbye.words == "device", "the operator sees who ended it"
