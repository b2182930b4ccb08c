"""Announcements that are spoken in a session, most of all those that were kept until a device woke up."""

import asyncio

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from fleet.adapters.redis.devices.tenants import SITE, DeviceTenants
from fleet.adapters.redis.sessions.conversations import Begun, StoredJournal
from fleet.adapters.redis.shards.job_calls import JobCalls
from fleet.core.ports import CallsAsked, TextDelta, ToolCall
from fleet.ground.errors import Unavailable
from fleet.roles.worker.announcements.delivery import CANCELLED
from fleet.roles.worker.turns.turn import WorkerTurn
from fleet.wire.edge_messages import SpeakSentenceCommand, UtteranceEvent
from fleet.wire.operator_calls import AWAKE_LATER
from tests.support.announcement_desk import Desk, describe, said
from tests.support.virtual_time import elapse
from tests.support.worker_stage import MAC, WorkerStage

TEXT = "Tea is ready. Come!"
REQUEST = "(An operator has the following said to me.)"


class Morning(Desk):
    """A device for which a text is kept wakes up."""

    async def keep(self) -> None:
        """Keep a text until the next session."""
        await self.put("evening", "speech", "wake", text=TEXT)
        record = await self.ended("evening")
        assert (record.state, record.text) == ("not_sent", AWAKE_LATER)

    async def wake(self, session: str = "s1", tenant: int = 0) -> None:
        """Begin a session; control hands the text over once more."""
        await self.stage.open(session)
        await self.put("morning", "speech", "wake", text=TEXT, tenant=tenant)
        while MAC not in self.kept._waiting:
            await elapse(0.05)

    async def ask(self, turn: str = "t1", **heard: bool) -> None:
        """Answer an utterance as `WorkerTurns` does."""
        begun = await self.begun(turn)
        utterance = UtteranceEvent(device=MAC, session="s1", turn=turn, text="light", language="de", **heard)
        async with self.kept.taken(begun, utterance) as kept:
            await WorkerTurn(self.stage.resources, self.calls, self.stage.shard, begun, utterance).run(kept)

    async def begun(self, turn: str = "t1") -> Begun:
        begun = await self.stage.begin(turn, "light")
        self.pauses.begin(MAC, turn)
        return begun

    async def journal(self) -> StoredJournal:
        found = await self.stage.resources.conversations.journal(MAC)
        assert found is not None
        return found

    async def move(self, tenant: int) -> None:
        """Give the device to another tenant."""
        await DeviceTenants(self.stage.resources.store).put({MAC: tenant})

    async def stop(self) -> None:
        """Stop the announcement."""
        await JobCalls(self.stage.resources.store, 1).recall([(MAC, "morning")])

    def said_alone(self) -> int:
        """Return how often the text was said as a turn of its own."""
        return self.stage.redis.run("XLEN", self.stage.resources.store.keys.inbox(0))


@pytest.fixture
async def morning(stage: WorkerStage) -> Morning:
    await stage.connect()
    await describe(stage, "2.2.6")
    return Morning(stage)


async def test_what_was_kept_is_said_before_the_first_answer_and_the_model_knows_of_it(morning: Morning) -> None:
    stage = morning.stage
    stage.llm.script = [[TextDelta("It is on.")]]
    async with morning.worker():
        await morning.keep()
        await morning.wake()
        await morning.ask()
        morning.pauses.end(MAC, "t1", "spoken")
        assert (await morning.ended("morning")).text == "speech: spoken"
    assert stage.spoken() == ["Tea is ready.", "Come!", "It is on."]
    sentences = [one for one in stage.edge_commands() if isinstance(one, SpeakSentenceCommand)]
    assert [one.language for one in sentences] == ["", "", "de"], "the text is in a language of its own"
    assert morning.said_alone() == 0
    prompt = stage.llm.asked[0][0]
    assert [(one.role, one.text) for one in prompt[1:3]] == [("user", REQUEST), ("assistant", TEXT)]
    assert prompt[-1].role == "user" and prompt[-1].text.endswith("light")
    history = (await stage.resources.conversations.context(MAC, 9)).history
    assert [one.text for one in history] == [REQUEST, TEXT, "light", "It is on."]


@pytest.mark.parametrize(("begun", "text"), [(1, "cut short"), (2, "cut short"), (3, "spoken")])
async def test_of_an_answer_that_is_cut_short_the_receipt_says_whether_the_text_was_heard(
    morning: Morning, begun: int, text: str
) -> None:
    morning.stage.llm.script = [[TextDelta("It is on.")]]
    async with morning.worker():
        await morning.keep()
        await morning.wake()
        await morning.ask()
        morning.pauses.end(MAC, "t1", "cut_short", begun)
        assert (await morning.ended("morning")).text == f"speech: {text}"
    assert morning.said_alone() == 0


async def test_one_of_which_nothing_was_heard_is_said_in_the_next_pause_and_once(morning: Morning) -> None:
    morning.stage.llm.script = [[TextDelta("It is on.")]]
    async with morning.worker():
        await morning.keep()
        await morning.wake()
        await morning.ask()
        morning.pauses.end(MAC, "t1", "cut_short", 0)
        event = await said(morning)
        assert (event.text, morning.said_alone()) == (TEXT, 1)


async def test_one_of_an_utterance_that_goes_on_is_said_before_the_answer_to_the_whole(morning: Morning) -> None:
    morning.stage.llm.script = [[TextDelta("It is…")], [TextDelta("It is on.")]]
    async with morning.worker():
        await morning.keep()
        await morning.wake()
        await morning.ask("t1")
        morning.kept.give_back(MAC, "t1")
        morning.pauses.withdraw(MAC, "t1", 0)
        await morning.ask("t2")
        morning.pauses.end(MAC, "t2", "spoken")
        assert (await morning.ended("morning")).text == "speech: spoken"
    history = (await morning.stage.resources.conversations.context(MAC, 9)).history
    assert [one.text for one in history][-4:] == [REQUEST, TEXT, "light", "It is on."]


@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize(("tenant", "target"), [(SITE, 5), (5, 6), (5, 0), (5, None)])
async def test_what_was_handed_over_is_not_said_once_the_device_was_moved_or_it_was_stopped(
    morning: Morning, tenant: int, target: int | None, *, asks: bool
) -> None:
    morning.stage.llm.script = [[TextDelta("It is on.")]]
    async with morning.worker():
        await morning.keep()
        await morning.wake(tenant=tenant)
        await (morning.stop() if target is None else morning.move(target))
        if asks:
            await morning.ask()
            morning.pauses.end(MAC, "t1", "spoken")
        record = await morning.ended("morning")
    assert (record.state, record.text) == ("not_sent", CANCELLED)
    assert morning.stage.spoken() == (["It is on."] if asks else [])
    assert morning.said_alone() == 0


@pytest.mark.parametrize(("tenant", "target"), [(SITE, None), (SITE, 0), (5, None), (5, 5), (0, 5)])
async def test_a_device_whose_tenant_is_the_same_or_not_known_is_told(
    morning: Morning, tenant: int, target: int | None
) -> None:
    morning.stage.llm.script = [[TextDelta("It is on.")]]
    async with morning.worker():
        await morning.keep()
        await morning.wake(tenant=tenant)
        if target is not None:
            await morning.move(target)
        await morning.ask()
        morning.pauses.end(MAC, "t1", "spoken")
        assert (await morning.ended("morning")).text == "speech: spoken"
    assert morning.stage.spoken() == ["Tea is ready.", "Come!", "It is on."]


async def test_a_turn_that_cannot_ask_whether_a_text_is_wanted_says_nothing_of_it(morning: Morning) -> None:
    async with morning.worker():
        await morning.keep()
        await morning.wake(tenant=5)
        begun = await morning.begun()
        utterance = UtteranceEvent(device=MAC, session="s1", turn="t1", text="light")
        morning.stage.connection.fault = RedisConnectionError("away")
        with pytest.raises(Unavailable):
            async with morning.kept.taken(begun, utterance):
                raise AssertionError
        morning.stage.connection.fault = None
        assert (await said(morning)).text == TEXT, "it is said in the next pause"
    assert morning.stage.spoken() == []


async def test_to_a_user_who_says_nothing_it_is_said_after_five_quiet_seconds(morning: Morning) -> None:
    async with morning.worker():
        await morning.keep()
        began = asyncio.get_running_loop().time()
        await morning.wake()
        assert (await said(morning)).text == TEXT
        assert asyncio.get_running_loop().time() - began == pytest.approx(5, abs=0.5)
        assert MAC not in morning.kept._waiting, "no turn may take it any more"


async def test_a_session_that_ends_at_once_gives_the_text_back_at_once(morning: Morning) -> None:
    async with morning.worker():
        await morning.keep()
        began = asyncio.get_running_loop().time()
        await morning.wake()
        await morning.stage.resources.sessions.close(morning.stage.shard.owner, MAC, "s1")
        morning.pauses.leave(MAC)
        assert (await morning.ended("morning")).text == AWAKE_LATER
        assert asyncio.get_running_loop().time() - began < 1
    assert morning.said_alone() == 0


async def test_in_a_session_that_follows_at_once_it_waits_for_a_pause_there(morning: Morning) -> None:
    async with morning.worker():
        await morning.keep()
        await morning.wake()
        await morning.stage.resources.sessions.close(morning.stage.shard.owner, MAC, "s1")
        await morning.stage.open("s2")
        morning.pauses.leave(MAC)
        began = asyncio.get_running_loop().time()
        assert (await said(morning)).session == "s2"
        assert asyncio.get_running_loop().time() - began == pytest.approx(5, abs=0.5)


@pytest.mark.parametrize("written", [False, True])
async def test_the_next_owner_knows_from_the_journal_whether_a_turn_has_said_it(
    morning: Morning, *, written: bool
) -> None:
    stage = morning.stage
    async with morning.worker():
        await morning.keep()
        await morning.wake()
        begun = await morning.begun()
        utterance = UtteranceEvent(device=MAC, session="s1", turn="t1", text="light")
        async with morning.kept.taken(begun, utterance) as kept:
            assert kept is not None
            if written:
                stage.llm.script = [[asyncio.Event()]]
                turn = WorkerTurn(stage.resources, morning.calls, stage.shard, begun, utterance)
                answer = asyncio.get_running_loop().create_task(turn.run(kept))
                while not stage.spoken():
                    await elapse(0.05)
                answer.cancel()
            else:
                await kept.note("t1")
            morning.dies()
    stage.llm.script = [[TextDelta("It is on.")]]
    morning.pauses = type(morning.pauses)()
    async with morning.worker():
        begun = await stage.begin("t1", "light")
        assert begun.journal is not None
        morning.pauses.begin(MAC, "t1")
        await WorkerTurn(stage.resources, morning.calls, stage.shard, begun, utterance).run()
        morning.pauses.end(MAC, "t1", "spoken")
        record = await morning.ended("morning")
    assert stage.spoken() == (["Tea is ready.", "Come!"] if written else []) + ["It is on."]
    assert record.text == ("speech: spoken" if written else AWAKE_LATER), "what was not said is kept again"
    assert morning.said_alone() == 0


async def test_without_redis_it_is_in_no_answer_or_in_one(morning: Morning) -> None:
    stage = morning.stage
    async with morning.worker():
        await morning.keep()
        await morning.wake()
        begun = await morning.begun()
        utterance = UtteranceEvent(device=MAC, session="s1", turn="t1", text="light")
        with pytest.raises(Unavailable):
            async with morning.kept.taken(begun, utterance) as kept:
                stage.connection.fault = RedisConnectionError("away")
                await WorkerTurn(stage.resources, morning.calls, stage.shard, begun, utterance).run(kept)
        stage.connection.fault = None
        stage.llm.script = [[TextDelta("It is on.")]]
        begun = await morning.begun()
        async with morning.kept.taken(begun, utterance) as kept:
            assert kept is None, "a turn that is taken up begins with what is in its journal"
            await WorkerTurn(stage.resources, morning.calls, stage.shard, begun, utterance).run(kept)
        morning.pauses.end(MAC, "t1", "spoken")
        assert (await said(morning)).text == TEXT
    assert stage.spoken() == ["It is on."]


async def test_a_failing_model_leaves_the_text_and_no_question_in_the_history(morning: Morning) -> None:
    morning.stage.llm.script = [[], []]
    async with morning.worker():
        await morning.keep()
        await morning.wake()
        await morning.ask()
    history = (await morning.stage.resources.conversations.context(MAC, 9)).history
    assert [one.text for one in history] == [REQUEST, TEXT]


async def test_an_answer_with_calls_begins_with_the_text_and_is_taken_up_behind_it(morning: Morning) -> None:
    morning.stage.llm.script = [[CallsAsked((ToolCall("c1", "none", "{}"),))], [TextDelta("No.")]]
    async with morning.worker():
        await morning.keep()
        await morning.wake()
        await morning.ask()
    journal = await morning.journal()
    assert [one.role for one in journal.messages] == ["user", "assistant", "user", "assistant", "tool", "assistant"]
    assert [one.text for one in journal.lead] == [REQUEST, TEXT]


async def test_other_turns_do_not_take_it(morning: Morning) -> None:
    morning.stage.llm.script = [[TextDelta("One.")], [TextDelta("Two.")]]
    async with morning.worker():
        await morning.put("evening", "speech", "wake", text=TEXT)
        await morning.ended("evening")
        await morning.wake()
        await morning.ask("t1", typed=True)
        assert morning.stage.spoken() == ["One."]


async def test_a_device_without_kept_texts_has_no_mark_and_its_turns_do_not_wait(morning: Morning) -> None:
    stage = morning.stage
    clock = asyncio.get_running_loop().time
    await stage.open()
    assert stage.redis.run("HGET", stage.resources.store.keys.session(MAC), "kept") is None
    began = clock()
    stage.llm.script = [[TextDelta("It is on.")]]
    async with morning.worker():
        await morning.put("now", "speech", "wake", text=TEXT)
        await elapse(1)
        await morning.ask()
        assert clock() - began == pytest.approx(1, abs=0.1)
        assert stage.spoken() == ["It is on."], "it is not kept, but waits for a pause"
