import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from fleet.adapters.redis.sessions.conversations import Begun, Conversations, StoredJournal
from fleet.core.ports import Message, ToolCall
from fleet.ground.errors import Fenced, Unavailable
from fleet.roles.worker.turns.edge_output import MOST_AT_ONCE, MOST_PER_SECOND
from fleet.roles.worker.turns.journal_writer import SHORT, JournalWriter, amend, end_abandoned_turn
from fleet.roles.worker.turns.speech import AnswerSpeech
from fleet.wire.edge_messages import UtteranceEvent
from tests.support.worker_stage import MAC, WorkerStage

USER = Message("user", "light")
CALL = Message("assistant", "I look. ", calls=(ToolCall("c1", "look", "{}"),))


class OneTurn:
    def __init__(self, stage: WorkerStage, begun: Begun) -> None:
        utterance = UtteranceEvent(device=MAC, session="s1", turn="t1", text="light")
        journal = begun.journal or StoredJournal("t1", "running", (USER,), 0)
        self.stage, self.tables = stage, stage.resources.conversations
        self.speech = AnswerSpeech(stage.shard, stage.resources.inboxes, begun.session, utterance, journal.sentences)
        self.writer = JournalWriter(self.tables, stage.shard.owner, MAC, journal, self.speech)

    async def journal(self) -> StoredJournal:
        journal = await self.tables.journal(MAC)
        assert journal
        return journal

    async def history(self) -> list[tuple[str, str]]:
        return [(one.role, one.text) for one in (await self.tables.context(MAC, 99)).history]


@pytest.fixture
async def turn(stage: WorkerStage) -> OneTurn:
    await stage.open("s1")
    return OneTurn(stage, await stage.begin("t1", "light"))


async def test_a_sentence_is_in_the_journal_before_the_edge_gets_it(turn: OneTurn) -> None:
    await turn.writer.say("It is ")
    assert (await turn.journal()).partial == "" and turn.stage.spoken() == []
    turn.stage.connection.fault = RedisConnectionError("away")
    with pytest.raises(Unavailable):
        await turn.writer.say("on. And ")
    turn.stage.connection.fault = None
    assert turn.stage.spoken() == []
    await turn.writer.say("it stays so. ")
    assert turn.stage.spoken() == ["It is on.", "And it stays so."]
    assert (await turn.journal()).partial == "It is on. And it stays so. "


async def test_an_answer_of_very_many_sentences_takes_others_no_room_in_the_inbox_of_their_edge(
    turn: OneTurn,
) -> None:
    clock, part = asyncio.get_running_loop().time, "a.\n" * 100
    begun, sent = clock(), 0
    for _ in range(20):
        await turn.writer.say(part)
        sent = turn.speech.handed
        assert sent <= MOST_AT_ONCE + MOST_PER_SECOND * (clock() - begun) + 1
    assert sent > 1_900 and clock() - begun > 50


async def test_an_answer_as_long_as_people_hear_is_sent_without_a_pause(turn: OneTurn) -> None:
    begun = asyncio.get_running_loop().time()
    for _ in range(MOST_AT_ONCE - 1):  # the answer's beginning is a message, too
        await turn.writer.say("It rains.\n")
    assert asyncio.get_running_loop().time() == begun and turn.speech.handed == MOST_AT_ONCE - 1


async def test_the_calls_of_a_message_are_in_the_journal_before_they_begin(turn: OneTurn) -> None:
    await turn.writer.say("I look. ")
    await turn.writer.record((CALL,))
    journal = await turn.journal()
    assert (journal.messages, journal.partial) == ((USER, CALL), "")


async def test_an_answer_is_in_the_history_before_its_end(turn: OneTurn) -> None:
    await turn.writer.say("On")
    await turn.writer.record((Message("assistant", "On"),))
    turn.stage.connection.fault = RedisConnectionError("away")
    with pytest.raises(Unavailable):
        await turn.writer.keep("")
    turn.stage.connection.fault = None
    assert turn.stage.edge_commands() == []
    await turn.writer.keep("")
    assert await turn.history() == [("user", "light"), ("assistant", "On")]
    await turn.speech.end()
    assert turn.stage.spoken() == ["On"] and (await turn.journal()).state == "written"
    assert [type(one).__name__ for one in turn.stage.edge_commands()].count("EndAnswerCommand") == 1


@pytest.mark.parametrize("step", ["record", "remember"])
async def test_of_a_turn_that_is_cancelled_when_its_edge_has_a_sentence_that_one_counts(
    turn: OneTurn, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    written, work = asyncio.Event(), getattr(Conversations, step)

    async def work_and_wait(*args: Any, **named: Any) -> None:
        await work(*args, **named)
        written.set()
        await asyncio.Event().wait()

    async def answer() -> None:
        await turn.writer.say("One. Two")
        await turn.writer.record((Message("assistant", "One. Two"),))
        await turn.writer.keep("")

    with monkeypatch.context() as patch:
        patch.setattr(Conversations, step, work_and_wait)
        answering = asyncio.get_running_loop().create_task(answer())
        await written.wait()
        answering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await answering
    heard = turn.stage.spoken()
    assert heard == (["One."] if step == "record" else ["One.", "Two"])
    await turn.writer.cut()
    [(_, _), (_, answer_kept)] = await turn.history()
    assert answer_kept.startswith(" ".join(heard)) and ("Two" in answer_kept) is (step == "remember")


async def test_a_sentence_counts_before_it_is_shown_to_who_watches(
    turn: OneTurn, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, messages = asyncio.Event(), turn.speech.messages

    async def show_and_wait(commands: Sequence[object]) -> None:
        shown.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(messages, "show", show_and_wait)
    answering = asyncio.get_running_loop().create_task(turn.writer.say("One. Two"))
    await shown.wait()
    answering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answering
    assert turn.stage.spoken() == ["One."]
    await turn.writer.cut()
    assert [text.startswith("One.") for _, text in await turn.history()] == [False, True]


async def test_the_end_of_a_turn_that_a_newer_one_replaced_is_not_sent(turn: OneTurn) -> None:
    await turn.writer.say("On")
    await turn.writer.cut()
    with pytest.raises(Fenced, match="the turn has ended"):
        await turn.writer.keep("")
    assert turn.stage.edge_commands() == []


async def test_another_worker_goes_on_where_the_first_one_stopped(turn: OneTurn) -> None:
    await turn.writer.say("I look. ")
    await turn.writer.record((CALL, Message("tool", "dark", call_id="c1")))
    await turn.writer.say("It is dark. Now I")
    begun = await turn.stage.begin("t1", "light")
    assert begun.journal
    second = OneTurn(turn.stage, begun)
    progress = await second.writer.replay()
    assert [message.text for message in progress.messages] == ["I look. ", "dark"]
    assert progress.said == ("It is dark.",)
    await second.writer.say(" switch it on. ")
    await second.speech.end()
    assert turn.stage.spoken() == ["I look.", "It is dark.", "switch it on."], "nothing twice, nothing torn"


async def test_a_turn_that_is_cut_leaves_what_the_edge_had(turn: OneTurn) -> None:
    await turn.writer.say("One. Two. Thr")
    await turn.writer.cut()
    assert (await turn.history())[-1][1].startswith("One. Two.")
    assert (await turn.journal()).state == "cut"
    with pytest.raises(Fenced):
        await turn.writer.keep("")
    await amend(turn.tables, turn.stage.shard.owner, MAC, "t1", 1)
    assert (await turn.history())[-1][1].startswith("One.") and "Two" not in (await turn.history())[-1][1]


async def test_an_apology_is_spoken_and_forgotten(turn: OneTurn) -> None:
    await turn.writer.apologise("Sorry.")
    await turn.writer.keep("")
    await turn.speech.end()
    assert turn.writer.apologised and turn.stage.spoken() == ["Sorry."] and await turn.history() == []


async def test_a_turn_that_is_not_the_newest_writes_nothing(turn: OneTurn) -> None:
    await end_abandoned_turn(turn.tables, turn.stage.shard.owner, MAC)
    await turn.stage.begin("t2", "more")
    with pytest.raises(Fenced):
        await turn.writer.say("Too late. ")
    with pytest.raises(Fenced):
        await turn.writer.keep("")
    await amend(turn.tables, turn.stage.shard.owner, MAC, "t1", 1)
    assert turn.stage.spoken() == [] and (await turn.journal()).turn == "t2"


async def test_a_turn_of_a_dead_worker_is_ended_with_what_its_journal_has(turn: OneTurn) -> None:
    await turn.writer.say("One. ")
    await turn.writer.say("Two. ")
    await end_abandoned_turn(turn.tables, turn.stage.shard.owner, MAC)
    assert (await turn.journal()).state == "cut" and "One." in (await turn.history())[-1][1]
    before = await turn.journal()
    await end_abandoned_turn(turn.tables, turn.stage.shard.owner, MAC)
    assert await turn.journal() == before


async def test_a_long_turn_is_cut_as_a_short_one(turn: OneTurn) -> None:
    sentences = SHORT // 10
    journal = replace(await turn.journal(), partial="A word. " * sentences, sentences=sentences)
    await turn.tables.record(turn.stage.shard.owner, MAC, journal)
    await amend(turn.tables, turn.stage.shard.owner, MAC, "t1", 2)
    assert (await turn.history())[-1][1].count("A word.") == 2
