import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.sessions.transcripts import WATCHED_SECONDS, Transcripts
from fleet.ground.errors import Overloaded
from fleet.ground.tasks import running
from fleet.roles.control.following import live as module
from fleet.roles.control.following.live import LiveTranscripts
from fleet.roles.worker.turns.live import LiveTranscript
from fleet.wire.edge_messages import SpeakSentenceCommand, UtteranceEvent
from tests.support.memory_store import memory_store
from tests.support.virtual_time import elapse

MAC, OTHER = "aa:bb:cc:00:00:01", "aa:bb:cc:00:00:02"


@pytest.fixture
async def store() -> Store:
    return await memory_store(shards=2)


@pytest.fixture
async def live(store: Store) -> AsyncIterator[LiveTranscripts]:
    one = LiveTranscripts(Transcripts(store))
    async with running("transcripts", one.run):
        yield one


async def say(store: Store, mac: str, text: str) -> None:
    """Let a turn tell what a turn tells."""
    turn = LiveTranscript(Transcripts(store), UtteranceEvent(device=mac, session="s", turn="t", text=text))
    await turn.begin()
    await turn.show([SpeakSentenceCommand(device=mac, session="s", turn="t", index=0, text="Yes.\nNo.")])
    await turn.end("answered")


async def read(frames: AsyncIterator[bytes], count: int) -> list[tuple[str, dict[str, object]]]:
    found = []
    while len(found) < count:
        lines = (await anext(frames)).decode().splitlines()
        if lines[0].startswith("event: "):
            found.append((lines[0][7:], json.loads(lines[1][6:])["data"]))
    return found


async def test_whoever_watches_a_device_sees_what_is_said_on_it(store: Store, live: LiveTranscripts) -> None:
    frames = live.follow(MAC, 1000)
    await anext(frames)
    await elapse(1)
    await say(store, MAC, "Hi?")
    await say(store, OTHER, "Psst")
    about = {"turn": "t", "session": "s"}
    assert await read(frames, 3) == [
        ("turn.heard", {**about, "text": "Hi?", "language": ""}),
        ("turn.sentence", {**about, "index": 0, "text": "Yes.\nNo."}),
        ("turn.ended", {**about, "outcome": "answered"}),
    ]
    await say(store, MAC, "Again")
    assert (await read(frames, 1))[0][1]["text"] == "Again"


async def test_nothing_is_kept_when_nobody_watches_any_more(store: Store, live: LiveTranscripts) -> None:
    key = store.keys.transcript(MAC)
    await say(store, MAC, "Psst")
    assert not await store.client.exists(key)
    frames = live.follow(MAC, 1000)
    await anext(frames)
    await elapse(5 * WATCHED_SECONDS)
    assert await store.client.exists(key)
    await frames.aclose()  # type: ignore[attr-defined]
    await elapse(WATCHED_SECONDS + 1)
    assert not await store.client.exists(key)


async def test_watchers_are_bounded_and_end_with_the_process(
    live: LiveTranscripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_WATCHERS", 1)
    frames = live.follow(MAC, 1000)
    await anext(frames)
    with pytest.raises(Overloaded):
        live.check()
    async with asyncio.TaskGroup() as group:
        rest = group.create_task(_all(frames))
        await elapse(1)
        live.close()
    assert rest.result() == []


async def _all(frames: AsyncIterator[bytes]) -> list[bytes]:
    return [frame async for frame in frames]
