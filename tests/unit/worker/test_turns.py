import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fleet.store.conversations import Journal
from fleet.wire.mail import SpeechInterrupted, UtteranceHeard
from fleet.worker import turns
from fleet.worker.calls import DeviceCalls
from fleet.worker.resources import Resources
from fleet.worker.shard import Shard
from fleet.worker.turns import Turns

MAC = "aa:bb:cc:dd:ee:ff"


class SlowTurn:
    """A turn that never ends by itself, and takes its time to write down how far it got."""

    written: list[str]
    may_write: asyncio.Event

    def __init__(self, *about: Any) -> None:
        self.turn = about[-1].turn

    async def run(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await self.may_write.wait()
            self.written.append(self.turn)


class Conversations:
    """The table as `Turns` uses it."""

    def __init__(self) -> None:
        self.done: list[str] = []

    async def begin(self, owner: Any, mac: str, session: str, turn: str, asked: Any) -> Any:
        self.done.append(f"begin {turn} after {SlowTurn.written}")
        return {"gone": "gone", "again": "again"}.get(turn, object())

    async def journal(self, mac: str) -> Journal:
        return Journal("one", "cut", (), 0)

    async def remember(self, owner: Any, mac: str, journal: Journal, lines: Any) -> bool:
        self.done.append(f"amend {journal.turn} after {SlowTurn.written}")
        return True


class Stage:
    def __init__(self, group: asyncio.TaskGroup) -> None:
        self.conversations = Conversations()
        resources = cast("Resources", SimpleNamespace(conversations=self.conversations))
        self.turns = Turns(resources, cast("DeviceCalls", None))
        self._group = group
        self.shard = cast("Shard", SimpleNamespace(owner=None, spawn=self._spawn))
        self.spawned = 0

    def _spawn(self, what: str, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        self.spawned += 1
        return self._group.create_task(work, name=what)

    async def begin(self, turn: str) -> None:
        heard = UtteranceHeard(device=MAC, session="s", turn=turn, text="hi")
        await self.turns.begin(self.shard, heard)
        await asyncio.sleep(0)

    async def interrupt(self, turn: str) -> None:
        await self.turns.interrupt(self.shard, SpeechInterrupted(device=MAC, session="s", turn=turn, spoken=1))


@pytest.fixture(autouse=True)
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "Turn", SlowTurn)
    SlowTurn.written, SlowTurn.may_write = [], asyncio.Event()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_turn_that_is_cancelled_twice_still_writes_down_how_far_it_got() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        stage = Stage(group)
        await stage.begin("one")
        for _ in range(2):
            stage.turns.cancel(MAC)
            await settle()
        SlowTurn.may_write.set()
    assert SlowTurn.written == ["one"]
    assert not stage.turns._running


async def test_an_interruption_is_put_right_after_the_turn_wrote_down_how_far_it_got() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        stage = Stage(group)
        await stage.begin("one")
        stage.turns.cancel(MAC)
        await settle()
        group.create_task(stage.interrupt("one"))
        await settle()
        SlowTurn.may_write.set()
    assert stage.conversations.done == ["begin one after []", "amend one after ['one']"]


async def test_a_newer_turn_begins_after_the_older_one_wrote_down_how_far_it_got() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        stage = Stage(group)
        await stage.begin("one")
        group.create_task(stage.begin("two"))
        await settle()
        SlowTurn.may_write.set()
        await settle()
        stage.turns.cancel(MAC)
    assert stage.conversations.done == ["begin one after []", "begin two after ['one']"]


@pytest.mark.parametrize("turn", ["gone", "again"])
async def test_what_cannot_begin_does_not_run(turn: str) -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        stage = Stage(group)
        await stage.begin(turn)
    assert stage.spawned == 0


async def test_an_utterance_that_comes_again_leaves_its_turn_running() -> None:
    SlowTurn.may_write.set()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        stage = Stage(group)
        for _ in range(2):
            await stage.begin("one")
        assert stage.spawned == 1
        stage.turns.cancel(MAC, "another")
        await settle()
        assert SlowTurn.written == []
        stage.turns.cancel(MAC, "one")
    assert SlowTurn.written == ["one"]
