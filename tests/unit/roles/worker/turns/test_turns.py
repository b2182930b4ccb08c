import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fleet.adapters.redis.sessions.conversations import Begun, Opening, StoredJournal
from fleet.adapters.redis.sessions.replies import Reply
from fleet.adapters.redis.sessions.sessions import SessionRecord
from fleet.adapters.redis.shards.inbox import StreamEntry
from fleet.ground.errors import Fenced, Unavailable
from fleet.ground.tasks import Backoff, isolate
from fleet.roles.worker.calls.device_calls import DeviceCalls
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.sessions.discovery import Discovery
from fleet.roles.worker.turns import turns
from fleet.roles.worker.turns.turns import WorkerTurns
from fleet.wire.edge_messages import AnswerInterruptedEvent, UtteranceEvent, UtteranceWithdrawnEvent

MAC = "aa:bb:cc:dd:ee:ff"
_SESSION = SessionRecord.of(MAC, {})


class SlowTurn:
    """A turn that ends when it is let go, and takes its time to write down how far it got."""

    written: list[str]
    may_write: asyncio.Event
    may_end: asyncio.Event
    failures: list[Exception]
    """Each ends one run."""
    runs: list[str]
    discards: set[str]
    """Those that discard their entry themselves."""

    def __init__(self, *about: Any) -> None:
        self.turn = about[-1].turn

    async def run(self, kept: object = None, entry: str = "") -> bool:
        self.runs.append(self.turn)
        if self.failures:
            raise self.failures.pop(0)
        await self.may_end.wait()
        return self.turn in self.discards

    async def cut(self) -> None:
        await self.may_write.wait()
        self.written.append(self.turn)


class Conversations:
    """The table as `WorkerTurns` uses it; `running` is the turn that it knows as such."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.running = ""
        self.stuck = False
        """Whether the turn before does not end."""
        self.forgets = False
        """Whether a turn that is taken up is gone."""

    async def begin(self, owner: Any, mac: str, opening: Opening, patience: float, history: int) -> Any:
        self.done.append(f"begin {opening.turn} after {SlowTurn.written}")
        if opening.turn in ("gone", "over"):
            return opening.turn
        if self.stuck or self.running not in ("", opening.turn, *SlowTurn.written):
            return "busy"
        again, self.running = self.running == opening.turn, opening.turn
        if again and self.forgets:
            return "gone"
        return Begun(_SESSION, StoredJournal(opening.turn, "running", (), 0) if again else None)

    async def journal(self, mac: str) -> StoredJournal:
        state = "cut" if self.running in SlowTurn.written else "running"
        return StoredJournal(self.running, cast("Any", state), (), 0)

    async def remember(self, owner: Any, mac: str, journal: StoredJournal, lines: Any) -> bool:
        self.done.append(f"amend {journal.turn} after {SlowTurn.written}")
        if not self.stuck:
            self.running = ""
        return True


class Replies:
    """The replies to typed texts: every turn was requested, some are over."""

    def __init__(self) -> None:
        self.known = {"over": Reply("answered", "done")}

    async def read(self, mac: str, turn: str) -> Reply | None:
        return None if turn == "unknown" else self.known.get(turn, Reply("accepted"))

    async def write(self, owner: Any, mac: str, turn: str, reply: Reply) -> None:
        self.known[turn] = reply


class Stage:
    def __init__(self, group: asyncio.TaskGroup) -> None:
        self.conversations = Conversations()
        self.discarded: list[str] = []
        settings = SimpleNamespace(turn_seconds=60, history_messages=20)
        self.replies = Replies()
        resources = SimpleNamespace(
            spoken=None,
            conversations=self.conversations,
            inboxes=self,
            settings=settings,
            replies=self.replies,
            llm=None,
        )
        self.turns = WorkerTurns(
            cast("WorkerResources", resources),
            cast("DeviceCalls", None),
            Discovery(cast("WorkerResources", resources), Counter()),
            Counter(),
        )
        self._group = group
        self.spawned: list[asyncio.Task[object]] = []
        self.shard = self.another_shard()

    def another_shard(self) -> Shard:
        return cast("Shard", SimpleNamespace(owner=None, spawn=self._spawn))

    def _spawn(self, what: str, work: Coroutine[None, None, None]) -> asyncio.Task[object]:
        self.spawned.append(self._group.create_task(isolate(what, work), name=what))
        return self.spawned[-1]

    async def discard(self, entries: Iterable[StreamEntry]) -> None:
        self.discarded += [entry.id for entry in entries]

    async def begin(self, turn: str, entry: str = "", shard: Shard | None = None, **more: Any) -> bool:
        """Pass an entry to the turns; return whether it is still needed."""
        heard = UtteranceEvent(device=MAC, session="s", turn=turn, text="hi", **more)
        return await self.turns.begin(shard or self.shard, StreamEntry(0, entry or turn, heard), heard)

    async def interrupt(self, turn: str) -> None:
        await self.turns.interrupt(self.shard, AnswerInterruptedEvent(device=MAC, session="s", turn=turn, spoken=1))


@pytest.fixture(autouse=True)
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(self: Backoff) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(turns, "WorkerTurn", SlowTurn)
    monkeypatch.setattr(Backoff, "pause", at_once)
    SlowTurn.written, SlowTurn.failures, SlowTurn.runs, SlowTurn.discards = [], [], [], set()
    SlowTurn.may_write, SlowTurn.may_end = asyncio.Event(), asyncio.Event()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_turns_entry_is_kept_until_it_has_ended() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        stage = Stage(group)
        assert await stage.begin("one", "7-0")
        await settle()
        assert stage.discarded == []
        SlowTurn.may_end.set()
    assert stage.discarded == ["7-0"]
    assert not stage.turns._running


async def test_an_entry_that_went_with_the_end_of_its_turn_is_not_discarded_again() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        stage = Stage(group)
        SlowTurn.discards.add("one")
        await stage.begin("one")
        SlowTurn.may_end.set()
    assert stage.discarded == [] and SlowTurn.runs == ["one"]


async def test_a_turn_that_is_cancelled_twice_still_writes_down_how_far_it_got() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        stage = Stage(group)
        await stage.begin("one")
        for _ in range(2):
            stage.turns.cancel(MAC)
            await settle()
        assert stage.discarded == []
        SlowTurn.may_write.set()
    assert SlowTurn.written == ["one"]
    assert stage.discarded == ["one"]
    assert not stage.turns._running


async def test_a_turn_that_ends_with_its_shard_is_left_as_it_is() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        stage = Stage(group)
        await stage.begin("one")
        SlowTurn.may_write.set()
        stage.spawned[0].cancel()
    assert SlowTurn.written == stage.discarded == []
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
        newer = group.create_task(stage.begin("two"))
        await settle()
        assert stage.conversations.done == ["begin one after []", "begin two after []"]
        SlowTurn.may_write.set()
        assert await newer
        stage.turns.cancel(MAC)
    assert stage.conversations.done[2:] == ["begin two after ['one']"]
    assert SlowTurn.runs == ["one", "two"]


async def test_a_turn_that_nobody_works_on_is_ended_before_a_newer_one_begins() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        stage = Stage(group)
        stage.conversations.running = "orphan"
        assert await stage.begin("two")
        SlowTurn.may_end.set()
    assert stage.conversations.done == ["begin two after []", "amend orphan after []", "begin two after []"]
    assert SlowTurn.runs == ["two"]


async def test_a_newer_turn_waits_for_another_attempt_while_the_one_before_does_not_end() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        stage = Stage(group)
        stage.conversations.running, stage.conversations.stuck = "orphan", True
        with pytest.raises(Unavailable):
            await stage.begin("two")
    assert stage.spawned == SlowTurn.runs == []


@pytest.mark.parametrize("turn", ["gone", "over"])
async def test_what_cannot_begin_does_not_run_and_its_entry_is_discarded(turn: str) -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        stage = Stage(group)
        assert not await stage.begin(turn)
    assert stage.spawned == []


async def test_an_utterance_that_comes_again_leaves_its_turn_running() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        stage = Stage(group)
        assert await stage.begin("one", "7-0")
        assert await stage.begin("one", "7-0"), "the entry that was read before is still needed"
        assert not await stage.begin("one", "8-0"), "one entry is enough"
        assert len(stage.spawned) == 1
        stage.turns.cancel(MAC, "another")
        await settle()
        SlowTurn.may_write.set()
        await settle()
        assert SlowTurn.written == []
        stage.turns.cancel(MAC, "one")
    assert SlowTurn.written == ["one"]


async def test_a_turn_of_an_earlier_lease_is_taken_up_once_it_is_gone() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        stage = Stage(group)
        await stage.begin("one")
        again = group.create_task(stage.begin("one", shard=stage.another_shard()))
        await settle()
        assert len(stage.spawned) == 1
        stage.spawned[0].cancel()
        assert await again
        SlowTurn.may_end.set()
    assert SlowTurn.runs == ["one", "one"]
    assert SlowTurn.written == []


async def test_a_turn_that_broke_off_is_taken_up_again_by_the_same_worker() -> None:
    SlowTurn.failures = [Unavailable("redis is away"), Unavailable("redis is away")]
    SlowTurn.may_end.set()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        stage = Stage(group)
        await stage.begin("one")
    assert SlowTurn.runs == ["one"] * 3
    assert stage.discarded == ["one"]


async def test_a_turn_that_breaks_off_again_and_again_is_left_to_the_next_owner() -> None:
    SlowTurn.failures = [Unavailable("redis is away")] * 9
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        stage = Stage(group)
        await stage.begin("one")
    assert SlowTurn.runs == ["one"] * 3
    assert stage.discarded == []


async def test_the_entry_of_a_turn_that_broke_off_and_is_gone_meanwhile_is_discarded() -> None:
    SlowTurn.failures = [Unavailable("redis is away")]
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        stage = Stage(group)
        stage.conversations.forgets = True
        await stage.begin("one")
    assert SlowTurn.runs == stage.discarded == ["one"]


async def test_a_turn_of_a_worker_that_lost_the_shard_is_not_taken_up_by_it() -> None:
    SlowTurn.failures = [Fenced("another worker's")]
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        stage = Stage(group)
        await stage.begin("one")
    assert SlowTurn.runs == ["one"]
    assert stage.discarded == []


async def test_who_types_politely_while_a_turn_runs_is_told_that_it_is_busy() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        stage = Stage(group)
        await stage.begin("one")
        assert not await stage.begin("two", typed=True, polite=True)
        assert not await stage.begin("three", polite=True), "nobody waits for a reply"
        assert SlowTurn.runs == ["one"] and not stage.spawned[0].cancelling()
        SlowTurn.may_end.set()
    assert stage.replies.known["two"] == Reply("busy") and "three" not in stage.replies.known


async def test_who_types_politely_while_an_abandoned_turn_is_in_the_way_is_answered() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        stage = Stage(group)
        stage.conversations.running = "orphan"
        assert await stage.begin("two", typed=True, polite=True)
        SlowTurn.may_end.set()


@pytest.mark.parametrize(("turn", "reply"), [("gone", Reply("interrupted")), ("over", Reply("answered", "done"))])
async def test_a_typed_text_that_is_not_answered_has_a_final_reply(turn: str, reply: Reply) -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        stage = Stage(group)
        assert not await stage.begin(turn, typed=True)
    assert stage.replies.known[turn] == reply


@pytest.mark.parametrize(("kind", "spoken"), [(AnswerInterruptedEvent, 2), (UtteranceWithdrawnEvent, None)])
async def test_of_an_interrupted_answer_stays_what_was_spoken_and_of_a_withdrawn_one_nothing(
    kind: type[AnswerInterruptedEvent | UtteranceWithdrawnEvent],
    spoken: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    amended = []

    async def amend(conversations: object, owner: object, mac: str, turn: str, spoken: int | None) -> None:
        amended.append((turn, spoken))

    monkeypatch.setattr(turns, "amend", amend)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        stage = Stage(group)
        await stage.turns.interrupt(stage.shard, kind(device=MAC, session="s", turn="one", spoken=2))
    assert amended == [("one", spoken)]
