"""Clips of announcements, made by an edge with a voice that a test plays."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from redis.exceptions import ConnectionError as RedisConnectionError

from fleet.adapters.redis.announcements.clips import Clips
from fleet.adapters.redis.client.store import Store
from fleet.ground.background import BackgroundTasks
from fleet.ground.errors import ProviderError
from fleet.roles.edge import clips as product
from fleet.roles.edge.clips import ClipMaker
from fleet.wire.edge_messages import MakeClipCommand
from fleet.workbench.sim.audio.ogg import OggReader
from tests.support.memory_redis import MemoryRedis
from tests.support.memory_store import connection_of, memory_store
from tests.support.virtual_time import elapse

PACKETS = [b"\x58one", b"\x58two", b"\x58three"]


class Voice:
    """Speaks three packets, or fails; notes who speaks at a time."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.fault: Exception | None = None
        self.at_once = self.most = 0

    async def packets(self, text: str, language: str, *more: Any) -> AsyncGenerator[Sequence[bytes], None]:
        self.texts.append(text)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await elapse(1)
            if self.fault:
                raise self.fault
            yield PACKETS[:2]
            yield PACKETS[2:]
        finally:
            self.at_once -= 1


class Stage:
    def __init__(self, store: Store) -> None:
        self.connection, clips = connection_of(store), Clips(store)
        self.clips, self.voice, self.tasks = clips, Voice(), BackgroundTasks()
        self.agents = SimpleNamespace(find=self._find)
        services: Any = SimpleNamespace(clips=clips, tasks=self.tasks, voice=self.voice, agents=self.agents)
        self.maker = ClipMaker(services)

    async def _find(self, digest: str) -> Any:
        return SimpleNamespace(speakers=())

    def ask(self, clip: str, tenant: int = 1) -> None:
        self.maker.take(MakeClipCommand(device="", session="", clip=clip, text=f"text {clip}", tenant=tenant))

    async def known(self, clip: str) -> str:
        while True:
            state = await self.clips.find(clip)
            if state.ms or state.failure:
                return state.failure or str(state.ms)
            await elapse(0.1)


@asynccontextmanager
async def running() -> AsyncIterator[Stage]:
    stage = Stage(await memory_store(MemoryRedis(), shards=1))
    async with stage.tasks.opened():
        yield stage


async def test_a_clip_is_an_ogg_file_of_the_voice_and_they_are_made_one_after_the_other() -> None:
    async with running() as stage:
        for name in ("a", "b", "c"):
            stage.ask(name)
        for name in ("a", "b", "c"):
            assert await stage.known(name) == "180"
        found = await stage.clips.read("a")
    assert found is not None
    reader = OggReader()
    assert reader.feed(found.audio) == PACKETS
    reader.finish()
    assert (stage.voice.texts, stage.voice.most) == (["text a", "text b", "text c"], 1)


async def test_who_waits_for_a_clip_learns_why_it_cannot_be_made() -> None:
    async with running() as stage:
        stage.voice.fault = ProviderError("the voice is away", retryable=True)
        stage.ask("a")
        assert await stage.known("a") == "the voice is away"
        stage.voice.fault = None
        for number in range(product.MOST_WAITING + 1):
            stage.ask(f"n{number}")
        assert await stage.known(f"n{product.MOST_WAITING}") == "too many clips are wanted"
        assert await stage.known(f"n{product.MOST_WAITING - 1}") == "180"


async def test_a_tenant_that_wants_many_clips_delays_others_by_one_and_loses_its_newest() -> None:
    async with running() as stage:
        for number in range(product.MOST_WAITING):
            stage.ask(f"n{number}")
        stage.ask("other", tenant=2)
        assert await stage.known("other") == "180"
        assert stage.voice.texts[:2] == ["text n0", "text other"]
        assert await stage.known(f"n{product.MOST_WAITING - 1}") == "too many clips are wanted"
        assert await stage.known(f"n{product.MOST_WAITING - 2}") == "180"


async def test_a_clip_that_is_wanted_or_was_made_is_not_made_again() -> None:
    async with running() as stage:
        stage.ask("a")
        stage.ask("b")
        stage.ask("b")
        await stage.known("b")
        stage.ask("b")
        stage.ask("c")
        assert await stage.known("c") == "180"
    assert stage.voice.texts == ["text a", "text b", "text c"]


async def test_clips_are_made_again_after_redis_was_away() -> None:
    async with running() as stage:
        stage.connection.fault = RedisConnectionError("away")
        stage.ask("a")
        await elapse(60)
        stage.connection.fault = None
        stage.ask("b")
        assert await stage.known("b") == "180"
