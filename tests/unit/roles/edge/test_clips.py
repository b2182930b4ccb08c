"""Clips of announcements, made by an edge with a voice that a test plays."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from fleet.adapters.redis.announcements.clips import Clips
from fleet.ground.background import BackgroundTasks
from fleet.ground.errors import ProviderError
from fleet.roles.edge import clips as product
from fleet.roles.edge.clips import ClipMaker
from fleet.wire.edge_messages import MakeClipCommand
from fleet.workbench.sim.audio.ogg import OggReader
from tests.support.memory_redis import MemoryRedis
from tests.support.memory_store import memory_store
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
    def __init__(self, clips: Clips) -> None:
        self.clips, self.voice, self.tasks = clips, Voice(), BackgroundTasks()
        self.agents = SimpleNamespace(find=self._find)
        services: Any = SimpleNamespace(clips=clips, tasks=self.tasks, voice=self.voice, agents=self.agents)
        self.maker = ClipMaker(services)

    async def _find(self, digest: str) -> Any:
        return SimpleNamespace(speakers=())

    def ask(self, clip: str) -> None:
        self.maker.take(MakeClipCommand(device="", session="", clip=clip, text=f"text {clip}"))

    async def known(self, clip: str) -> str:
        while True:
            state = await self.clips.find(clip)
            if state.ms or state.failure:
                return state.failure or str(state.ms)
            await elapse(0.1)


@asynccontextmanager
async def running() -> AsyncIterator[Stage]:
    stage = Stage(Clips(await memory_store(MemoryRedis(), shards=1)))
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
