"""What is remembered of turns that were cut off: what the user heard, and every call with its outcome."""

import asyncio

import pytest

from fleet.core.history import INTERRUPTED, UNANSWERED
from fleet.core.situation import words_of
from fleet.wire import edge_messages
from tests.integration.worker.scene import VOLUME, Scene, asks, says, text

SET = asks("audio_speaker_set_volume", '{"volume":30}')
STORY = ("Once there was a cat. ", "It was red. ", "It slept.")


async def interrupt(stage: Scene, session: str, turn: str, spoken: int) -> None:
    cut = edge_messages.AnswerInterruptedEvent(device=stage.device.mac, session=session, turn=turn, spoken=spoken)
    await stage.post(cut)


async def tell_story(stage: Scene) -> tuple[str, str]:
    session = await stage.greet()
    stage.llm.script = [says(*STORY)]
    turn = await stage.utter(session, "a story")
    await stage.edge.next(edge_messages.StartAnswerCommand)
    assert len(await stage.spoken()) == 3
    await stage.until_remembered(("user", "a story"), ("assistant", "".join(STORY)))
    return session, turn


@pytest.mark.parametrize(
    ("spoken", "heard"),
    [(0, INTERRUPTED), (1, f"Once there was a cat. {INTERRUPTED}"), (9, f"{''.join(STORY)} {INTERRUPTED}")],
)
async def test_of_a_written_answer_what_was_heard_is_remembered(stage: Scene, spoken: int, heard: str) -> None:
    session, turn = await tell_story(stage)
    for _ in range(2):  # delivered again, it says the same
        await interrupt(stage, session, turn, spoken)
    await stage.until_remembered(("user", "a story"), ("assistant", heard))
    stage.llm.script = [says("Yes.")]
    await stage.utter(session, "go on")
    await stage.spoken()
    assert [words_of(message.text) for message in stage.llm.asked[-1][0][1:]] == ["a story", heard, "go on"]


async def test_an_interruption_that_comes_after_the_next_turn_began_changes_nothing(stage: Scene) -> None:
    session, turn = await tell_story(stage)
    stage.llm.script = [says("Yes.")]
    await stage.utter(session, "go on")
    await stage.spoken()
    await interrupt(stage, session, turn, 1)
    stage.llm.script = [says("No.")]
    await stage.utter(session, "really")
    await stage.spoken()
    story = (("user", "a story"), ("assistant", "".join(STORY)))
    await stage.until_remembered(
        *story, ("user", "go on"), ("assistant", "Yes."), ("user", "really"), ("assistant", "No.")
    )


async def begin_story(stage: Scene) -> tuple[str, str]:
    """Have two sentences written, and the model still writing."""
    session = await stage.greet()
    stage.llm.script = [[*says(*STORY[:2], "It sl"), asyncio.Event()]]
    turn = await stage.utter(session, "a story")
    await stage.edge.next(edge_messages.StartAnswerCommand)
    for _ in range(2):
        await stage.edge.next(edge_messages.SpeakSentenceCommand)
    return session, turn


async def test_of_an_answer_that_is_still_written_what_was_heard_is_remembered(stage: Scene) -> None:
    session, turn = await begin_story(stage)
    await interrupt(stage, session, turn, 1)
    async with asyncio.timeout(240):
        await stage.llm.closed.wait()
    await stage.until_remembered(("user", "a story"), ("assistant", f"Once there was a cat. {INTERRUPTED}"))


async def test_after_an_abort_the_edge_says_what_was_heard(stage: Scene) -> None:
    session, turn = await begin_story(stage)
    await stage.device.say({"type": "abort", "session_id": session})
    await stage.edge.until(edge_messages.AbortAnswerCommand)
    await interrupt(stage, session, turn, 1)
    await stage.until_remembered(("user", "a story"), ("assistant", f"Once there was a cat. {INTERRUPTED}"))


@pytest.mark.parametrize("last", [{"type": "goodbye"}, {"type": "hello"}])
async def test_when_nobody_says_what_was_heard_what_was_handed_over_is_remembered(
    stage: Scene, last: dict[str, str]
) -> None:
    session, _ = await begin_story(stage)
    await stage.device.say({**last, "session_id": session})
    await stage.until_remembered(("user", "a story"), ("assistant", f"Once there was a cat. It was red. {INTERRUPTED}"))


async def test_a_newer_turn_comes_after_the_one_that_it_ended(stage: Scene) -> None:
    session, _ = await begin_story(stage)
    stage.llm.script = [says("Yes.")]
    await stage.utter(session, "stop, something else")
    await stage.edge.until(edge_messages.StartAnswerCommand)
    await stage.spoken()
    assert [message.role for message in stage.llm.asked[-1][0]] == ["system", "user", "assistant", "user"]
    await stage.until_remembered(
        ("user", "a story"),
        ("assistant", f"Once there was a cat. It was red. {INTERRUPTED}"),
        ("user", "stop, something else"),
        ("assistant", "Yes."),
    )


async def test_what_a_tool_did_is_remembered_though_its_answer_was_not_heard(stage: Scene) -> None:
    session = await stage.prepare(VOLUME)
    stage.llm.script = [SET, says("It is 30 now.")]
    turn = await stage.utter(session, "30")
    await stage.device.answer(await stage.device.hear_request("tools/call"), result=text("true"))
    await stage.edge.next(edge_messages.StartAnswerCommand)
    await stage.spoken()
    await interrupt(stage, session, turn, 0)
    await stage.until_remembered(("user", "30"), ("assistant", ""), ("tool", "true"), ("assistant", INTERRUPTED))


async def test_no_call_is_remembered_without_an_outcome(stage: Scene) -> None:
    session = await stage.prepare(VOLUME)
    stage.llm.script = [SET, says("Yes.")]
    turn = await stage.utter(session, "30")
    await stage.device.hear_request("tools/call")
    await interrupt(stage, session, turn, 0)
    await stage.until_remembered(("user", "30"), ("assistant", ""), ("tool", UNANSWERED), ("assistant", INTERRUPTED))
    await stage.utter(session, "well?")
    await stage.edge.until(edge_messages.StartAnswerCommand)
    asked = stage.llm.asked[-1][0]
    assert [message.role for message in asked] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert asked[2].calls[0].id == asked[3].call_id
