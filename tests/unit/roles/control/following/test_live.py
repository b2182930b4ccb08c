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
from fleet.roles.control.following.shares import ShareTaken
from fleet.roles.worker.turns.live import LiveTranscript
from fleet.wire.edge_messages import SpeakSentenceCommand, UtteranceEvent
from tests.support.memory_store import memory_store
from tests.support.virtual_time import elapse
from tests.unit.roles.control.following.test_feed import WHO, one_of

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
    frames = live.follow(WHO, MAC, 1000)
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
    frames = live.follow(WHO, MAC, 1000)
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
    frames = live.follow(WHO, MAC, 1000)
    await anext(frames)
    with pytest.raises(Overloaded):
        live.check(one_of(2, tenant=2))
    async with asyncio.TaskGroup() as group:
        rest = group.create_task(_all(frames))
        await elapse(1)
        live.close()
    assert rest.result() == []


async def test_a_token_and_a_tenant_leave_places_to_the_others(
    live: LiveTranscripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_WATCHERS", 8)
    for token in (1, 1, 2, 2):
        await anext(live.follow(one_of(token), MAC, 1000))
    with pytest.raises(ShareTaken, match="one token"):
        live.check(one_of(1))
    with pytest.raises(ShareTaken, match="one tenant"):
        live.check(one_of(3))
    live.check(one_of(4, tenant=2))


async def test_the_watchers_of_a_token_end_with_it(live: LiveTranscripts, store: Store) -> None:
    ended, other = live.follow(one_of(1), MAC, 1000), live.follow(one_of(2), MAC, 20)
    await anext(ended)
    await anext(other)
    assert live.principals() == {one_of(1), one_of(2)}
    live.end([one_of(1)])
    await elapse(1)
    await say(store, MAC, "Psst")
    assert await _all(ended) == []
    assert b"Psst" in (await _all(other))[0]


async def _all(frames: AsyncIterator[bytes]) -> list[bytes]:
    return [frame async for frame in frames]
