"""The parts of a worker on a Redis in memory and without a broker, for unit tests in virtual time."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from fleet.adapters.redis import keys as names
from fleet.adapters.redis.sessions.conversations import Begun, Opening
from fleet.adapters.redis.sessions.sessions import SessionRecord
from fleet.adapters.redis.shards.edges import EdgeRecord
from fleet.adapters.redis.shards.leases import Leases
from fleet.core.agent_settings import OneModel
from fleet.core.ports import Message
from fleet.ground.settings import load
from fleet.ground.settings.slices import slice_of
from fleet.ground.tasks import running
from fleet.roles.worker.ownership.lease import Lease
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.sessions.edge_directory import EdgeDirectory
from fleet.roles.worker.settings import WorkerSettings
from fleet.wire.edge_messages import EDGE_COMMANDS, EdgeCommand, SpeakSentenceCommand
from fleet.wire.identity import CredentialKeys
from fleet.wire.messages import AudioFormat
from tests.integration.worker.scripted import ScriptedLlm
from tests.support.memory_redis import MemoryRedis
from tests.support.memory_store import connection_of, memory_store
from tests.support.shard_session import SilentSession

MAC = "aa:bb:cc:dd:ee:ff"
EDGE = "edge-1"
FOR_EVER = 1e6


class WorkerStage:
    """A shard under a lease, and all tables; `receive` of the shard's messages is left out."""

    def __init__(self, redis: MemoryRedis, resources: WorkerResources, llm: ScriptedLlm, lease: Lease) -> None:
        async def receive(shard: Shard, kind: str, mac: str, payload: bytes) -> None:
            raise AssertionError(kind)

        async def confirm(shard: Shard) -> bool:
            return True

        self.redis, self.resources, self.llm = redis, resources, llm
        self.connection = connection_of(resources.store)
        self.session = SilentSession()
        self.shard = Shard(0, lease, lambda _: self.session, SimpleNamespace(receive=receive), confirm)
        self.counts: Counter[str] = Counter()
        self._turns: list[str] = []
        self._began = int(redis.now() * 1000)
        self.directory = EdgeDirectory(resources.edges, 100)
        self.directory.update([EdgeRecord(EDGE, "h.example", 8884, 0)], asyncio.get_running_loop().time())

    def edge_commands(self, edge: str = EDGE) -> list[EdgeCommand]:
        """Return what an edge was sent so far."""
        entries = self.redis.run("XRANGE", names.edge_inbox(edge), "-", "+")
        return [EDGE_COMMANDS.decode(dict(zip(words[::2], words[1::2], strict=True))["m"]) for _, words in entries]

    def spoken(self) -> list[str]:
        """Return the sentences that the edge has; one with a number that it has must be the same, and is skipped."""
        known: dict[int, str] = {}
        for command in self.edge_commands():
            if isinstance(command, SpeakSentenceCommand):
                assert known.setdefault(command.index, command.text) == command.text
        assert list(known) == list(range(len(known)))
        return list(known.values())

    def sent(self) -> list[dict[str, Any]]:
        """Return what the device was sent so far."""
        return self.session.sent(MAC)

    async def connect(self, *, online: bool = True, epoch: int = 1) -> None:
        """Let the device appear or disappear."""
        await self.resources.devices.appear(MAC, online=online, epoch=epoch, owner=self.shard.owner)

    async def open(self, session: str = "s1", edge: str = EDGE, dialect: str = "xiaozhi") -> SessionRecord:
        """Open a session in Redis only."""
        audio = AudioFormat(16_000, 60)
        record = SessionRecord(session, MAC, dialect, edge, 7, "0" * 32, audio, audio)
        await self.resources.sessions.open(self.shard.owner, record)
        return record

    async def begin(self, turn: str, text: str) -> Begun:
        """Begin a turn of the session `s1`, or take it up; a newer turn has a newer entry."""
        if turn not in self._turns:
            self._turns.append(turn)
        opening = Opening("s1", turn, Message("user", text), f"{self._began}-{self._turns.index(turn)}")
        begun = await self.resources.conversations.begin(
            self.shard.owner, MAC, opening, 60, self.resources.settings.history_messages
        )
        assert isinstance(begun, Begun), begun
        return begun


@asynccontextmanager
async def worker_stage(**settings: Any) -> AsyncIterator[WorkerStage]:
    redis, llm = MemoryRedis(), ScriptedLlm()
    store = await memory_store(redis, shards=1)
    values = slice_of(load(shards=1, **settings), WorkerSettings)
    resources = WorkerResources.of(values, CredentialKeys("k1:a-key-for-tests-only-1"), OneModel(llm), store)
    owner = await Leases(store, "w", FOR_EVER).take(0)
    assert owner is not None
    clock = asyncio.get_running_loop().time
    stage = WorkerStage(redis, resources, llm, Lease(owner, clock(), FOR_EVER, clock))
    async with running("shard", stage.shard.run):
        while not stage.shard.connected:
            await asyncio.sleep(0)
        yield stage
