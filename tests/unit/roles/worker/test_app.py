"""A whole worker on a Redis in memory; sessions that are connected at once stand for the broker."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from fleet.adapters.net.mqtt.session import Reading
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.adapters.redis.shards.edges import EdgeRecord
from fleet.ground.tasks import running
from fleet.roles.worker import plugin_counts
from fleet.roles.worker.app import Worker
from fleet.roles.worker.ownership import owner_loss, shard
from fleet.roles.worker.plugin_counts import FILTER, PREFIX
from fleet.wire.edge_messages import AnswerDoneEvent, UtteranceEvent
from fleet.wire.topics import up_topic
from tests.integration.worker.scene import HELLO, VOLUME, asks, says, text
from tests.support.garbage import no_garbage
from tests.support.virtual_time import elapse
from tests.support.worker_stage import EDGE, MAC, WorkerStage

BOOT = b'{"epoch": 5}'
ANSWERS = {
    "initialize": {"serverInfo": {"name": "board", "version": "2.4.2"}},
    "tools/list": {"tools": [VOLUME]},
    "tools/call": text("true"),
}


class Session:
    """A session that is connected until the worker ends."""

    made: list["Session"]

    def __init__(self, *_: Any, reading: Reading, **__: Any) -> None:
        self.reading, self.connected = reading, False
        self.published: list[bytes] = []
        self.made.append(self)

    async def run(self, *ready: Callable[[], None]) -> None:
        self.connected = True
        for be_ready in ready:
            be_ready()
        await asyncio.Event().wait()

    def publish(self, topic: str, payload: bytes) -> None:
        self.published.append(payload)

    async def drain(self, seconds: float) -> None:
        return


@pytest.fixture
async def worker(stage: WorkerStage, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Worker]:
    """A worker that owns the only shard: the stage has given its lease up."""
    Session.made = []
    stage.redis.run("DEL", stage.resources.store.keys.own(0))
    for module in (plugin_counts, owner_loss, shard):
        monkeypatch.setattr(module, "MqttSession", Session)
    one = Worker(stage.resources, "w", MqttAddress("127.0.0.1", 1))
    async with running("worker", one.run):
        await elapse(5)
        yield one


def counting() -> list[Session]:
    return [session for session in Session.made if session.reading.filters == [FILTER]]


async def test_a_worker_is_ready_when_its_shards_are_connected(worker: Worker) -> None:
    assert worker.ready and worker.connected and worker.settled
    for session in Session.made:
        session.connected = False
    assert not worker.ready and not worker.connected and not worker.settled


async def test_the_owner_of_the_first_shard_counts_what_the_plugin_refuses(worker: Worker) -> None:
    [owned] = worker._shards.owned.values()
    arrived = worker.expect(MAC, b'{"online": true, "epoch": 7}', asyncio.Future())
    await worker.receive(owned, "presence", MAC, arrived)
    await elapse(5)
    assert counting() == [], "no broker with the plugin was seen"
    await worker.receive(owned, "boot", "", BOOT)
    await elapse(5)
    [session] = counting()
    for count in (b"1", b"5"):
        await session.reading.on_message(f"{PREFIX}floods", count)
    assert worker.counts == {"broker: floods": 4}


async def test_new_devices_are_counted(worker: Worker) -> None:
    assert worker.new_devices == 0


class Visitor:
    """A device that says hello, is asked for its tools, does what a turn wants, and says goodbye.

    Args:
        stage: Has the model and the edges.
        session: The MQTT session of the device's shard.
    """

    def __init__(self, stage: WorkerStage, session: Session) -> None:
        self._stage = stage
        self._session = session
        self._turns = itertools.count()

    async def visit(self, *, turn: bool) -> None:
        """Begin a session and end it, with or without a turn that calls a tool."""
        await elapse(30)  # so that no hello is one too many
        await self._stage.resources.edges.announce(EdgeRecord(EDGE, "h.example", 8884, 0))
        await elapse(1.5)
        await self._say(HELLO)
        session = str((await self._obey())["session_id"])
        if turn:
            name = f"t{next(self._turns)}"
            self._stage.llm.script += [asks("audio_speaker_set_volume", '{"volume": 70}'), says("It is louder.")]
            utterance = UtteranceEvent(device=MAC, session=session, turn=name, text="Louder!")
            await self._stage.resources.inboxes.to_shard(0, utterance)
            await self._obey()
            assert self._stage.llm.script == [], "the model was told the outcome"
            done = AnswerDoneEvent(device=MAC, session=session, turn=name)
            await self._stage.resources.inboxes.to_shard(0, done)
        await self._say({"type": "goodbye", "session_id": session})
        await elapse(1)
        assert await self._stage.resources.sessions.read(MAC) is None

    async def _say(self, message: dict[str, Any]) -> None:
        await self._session.reading.on_message(up_topic(MAC), json.dumps(message).encode())

    async def _obey(self) -> dict[str, Any]:
        """Answer requests until there are no more; return the first message."""
        first: dict[str, Any] = {}
        await elapse(1)
        while self._session.published:
            message = json.loads(self._session.published.pop(0))
            first = first or message
            if message["type"] == "mcp" and "id" in message["payload"]:
                request = message["payload"]
                answer = {"jsonrpc": "2.0", "id": request["id"], "result": ANSWERS[request["method"]]}
                await self._say({"type": "mcp", "session_id": "", "payload": answer})
                await elapse(1)
        return first


@pytest.mark.parametrize("turn", [False, True], ids=["hello and goodbye", "with a turn and a call"])
async def test_closed_sessions_are_freed_without_the_garbage_collector(
    stage: WorkerStage, worker: Worker, turn: bool
) -> None:
    [session] = [one for one in Session.made if up_topic(MAC).rpartition("/")[0] + "/+" in one.reading.filters]
    visitor = Visitor(stage, session)
    await visitor.visit(turn=turn)  # what is made once stays
    with no_garbage():
        for _ in range(3):
            await visitor.visit(turn=turn)
