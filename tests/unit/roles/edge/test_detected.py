"""`listen/detect`: a wake word is no question, and what was typed is one."""

import pytest

from fleet.core.wake_words import LONGEST_QUESTION
from fleet.ground.metrics import turns as timed
from tests.support.edge_stage import Stage, on_stage, opus_like
from tests.support.socket_forms import socket_form

__all__ = ["socket_form"]


async def detect(stage: Stage, text: str) -> None:
    await stage.send("wake_word_heard", text=text)


async def nothing_asked(stage: Stage) -> None:
    """What is typed next is the first thing that the shard is asked."""
    await detect(stage, "Is this the first?")
    assert (await stage.heard()).text == "Is this the first?"


@pytest.mark.parametrize("mode", ["auto", "realtime", "manual"])
@pytest.mark.requirement("XZ-031")
async def test_a_question_that_is_typed_while_the_device_listens_is_answered(mode: str) -> None:
    """As py-xiaozhi's text box does it: `listen start`, then `detect`."""
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen(mode)
        device.be_silent(5)
        await stage.received(5)
        await detect(stage, ' What is "1+1"?\n你说呢 ')
        heard = await stage.heard()
        assert (heard.text, heard.session, heard.typed) == ('What is "1+1"?\n你说呢', "s1", False)
        await stage.speak(heard.turn, "Two")
        await stage.told_at_least("stt", "start", "sentence_start", "stop")
        assert stage.told() == ["stt", "start", "sentence_start", "stop"]
        assert stage.orders[0]["text"] == heard.text


@pytest.mark.requirement("XZ-031")
async def test_a_short_question_without_audio_is_answered_when_no_audio_came_late() -> None:
    async with on_stage() as stage:
        await stage.open()
        await detect(stage, "几点了")
        assert (await stage.heard()).text == "几点了"


@pytest.mark.requirement("XZ-031")
async def test_a_question_ends_the_answer_before_it() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        stage.voice.packets_each = 200
        device.say()
        first = (await stage.heard()).turn
        await stage.speak(first, "A", "B")
        await device.packets(2)
        await detect(stage, "and now this?")
        second = await stage.heard(2)
        assert second.text == "and now this?"
        await stage.until(lambda: "speech_interrupted" in stage.kinds())
        await stage.speak(second.turn, "C")
        await stage.told_at_least("start", "stop", "stt", "start", "sentence_start")


@pytest.mark.requirement("XZ-032")
async def test_a_wake_word_that_is_typed_stays_one() -> None:
    async with on_stage() as stage:
        await stage.open()
        await stage.listen()
        for text in ("你好小智", "Hi, ESP", "  ", "！"):
            await detect(stage, text)
        await nothing_asked(stage)


@pytest.mark.requirement("XZ-032")
async def test_a_wake_word_of_the_operator_is_one() -> None:
    async with on_stage(wake_words="Hello House,小胖") as stage:
        await stage.open()
        await stage.listen()
        await detect(stage, "hello house")
        await nothing_asked(stage)


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.requirement("XZ-032")
async def test_a_wake_word_that_nobody_knows_is_known_by_its_audio_and_remembered(order: str) -> None:
    async with on_stage() as stage:
        device = await stage.open()
        burst = [opus_like(number + 1) for number in range(33)]
        if order == "before":
            device.send(*burst)
            await stage.received(33)
        await detect(stage, "小胖")
        if order == "after":
            device.send(*burst)
            await stage.received(33)
        [session] = stage.edge._registry
        await stage.until(lambda: not session.parts.detected._timer.tick)
        await detect(stage, "小胖")
        await stage.until(lambda: not session.parts.detected._timer.tick)
        assert not stage.utterances()


async def test_a_question_that_is_too_long_is_not_asked_and_its_user_told() -> None:
    before = timed.utterances._own[("typed_too_long",)]
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        device.be_silent(5)
        await stage.received(5)
        await detect(stage, "x" * (LONGEST_QUESTION + 1))
        await stage.told_at_least("start", "stop")
        assert stage.voice.spoken == ["Sorry, that text is too long."]
        assert not stage.utterances()
    assert timed.utterances._own[("typed_too_long",)] == before + 1


async def test_questions_are_limited_for_each_device() -> None:
    before = timed.utterances._own[("typed_too_often",)]
    async with on_stage(rate_input="0.001/2") as stage:
        await stage.open()
        await stage.listen()
        for number in range(4):
            await detect(stage, f"question {number}?")
        await stage.until(lambda: len(stage.utterances()) == 2)
    assert timed.utterances._own[("typed_too_often",)] == before + 2
