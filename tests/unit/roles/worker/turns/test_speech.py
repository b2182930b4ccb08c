import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from fleet.ground.errors import Unavailable
from fleet.ground.metrics import turns as timed
from fleet.ground.metrics.histogram import HistogramMetric
from fleet.roles.worker.turns.speech import AnswerSpeech
from fleet.wire.edge_messages import (
    EndAnswerCommand,
    SpeakSentenceCommand,
    StartAnswerCommand,
    TurnProgressCommand,
    UtteranceEvent,
)
from tests.support.virtual_time import elapse
from tests.support.worker_stage import MAC, WorkerStage


async def speech(stage: WorkerStage, handed: int = 0) -> AnswerSpeech:
    heard = UtteranceEvent(device=MAC, session="s1", turn="t1", text="hi", language="en")
    return AnswerSpeech(stage.shard, stage.resources.inboxes, await stage.open("s1"), heard, handed)


def names(stage: WorkerStage) -> list[str]:
    return [type(command).__name__ for command in stage.edge_commands()]


async def test_an_answer_starts_once_and_ends_with_the_number_of_its_sentences(stage: WorkerStage) -> None:
    one = await speech(stage)
    for piece in ("  ", "One. ", "Two", ". Three"):
        one.write(piece)
        await one.hand_over()
    await one.end()
    start, *sentences, end = stage.edge_commands()
    assert isinstance(start, StartAnswerCommand) and isinstance(end, EndAnswerCommand)
    assert [(one.index, one.text) for one in sentences] == [(0, "One."), (1, "Two."), (2, "Three")]  # type: ignore[union-attr]
    assert end.index == 3 and one.handed == 3


async def test_sentences_wait_until_they_are_handed_over_also_while_redis_is_away(stage: WorkerStage) -> None:
    one = await speech(stage)
    one.write("One. Two. ")
    assert one.waits and names(stage) == []
    stage.connection.fault = RedisConnectionError("away")
    with pytest.raises(Unavailable):
        await one.hand_over()
    stage.connection.fault = None
    assert one.waits
    await one.hand_over()
    assert not one.waits and stage.spoken() == ["One.", "Two."]


async def test_what_the_edge_had_before_is_not_sent_again(stage: WorkerStage) -> None:
    one = await speech(stage, handed=1)
    await one.add_message("One. Two. ", repeated=True)
    await one.hand_over()
    [sentence] = [one for one in stage.edge_commands() if isinstance(one, SpeakSentenceCommand)]
    assert (sentence.index, sentence.text, sentence.emotion) == (1, "Two.", "")


async def test_the_first_sentence_carries_the_emotion_and_no_symbols(stage: WorkerStage) -> None:
    one = await speech(stage)
    one.write("😀 **Hello**. Bye. ")
    one.set_language("de")
    one.set_language("")
    one.write("Tschüss. ")
    await one.hand_over()
    sentences = [one for one in stage.edge_commands() if isinstance(one, SpeakSentenceCommand)]
    assert [(one.text, one.emotion, one.language) for one in sentences] == [
        ("Hello.", "happy", "en"),
        ("Bye.", "", "en"),
        ("Tschüss.", "", "de"),
    ]


async def test_an_aborted_answer_ends_after_what_was_handed_over(stage: WorkerStage) -> None:
    one = await speech(stage)
    one.write("One. ")
    await one.hand_over()
    one.write("Two. ")
    await one.abort()
    end = stage.edge_commands()[-1]
    assert isinstance(end, EndAnswerCommand) and end.index == 1 and stage.spoken() == ["One."]


def counted(metric: HistogramMetric) -> tuple[int, float]:
    return sum(metric.tally().counts), metric.tally().sum


async def test_the_waits_for_the_first_token_and_the_first_sentence_are_measured(
    stage: WorkerStage, caplog: pytest.LogCaptureFixture
) -> None:
    tokens, sentences = counted(timed.llm_ttft), counted(timed.llm_ttfs)
    with caplog.at_level("INFO"):
        one = await speech(stage)
        for seconds, piece in ((1, " "), (1, "On"), (2, "e. "), (4, "Two. ")):
            await elapse(seconds)
            one.write(piece)
    # The demo shows these lines.
    waits = [(line.message, round(line.__dict__["seconds"])) for line in caplog.records if "seconds" in line.__dict__]
    assert waits == [("llm first token", 2), ("first sentence", 4)]
    stages = one.stages.facts("en").stages
    assert [round(stages[name] / 1000) for name in ("first_token", "first_sentence", "written")] == [2, 4, 8]
    assert counted(timed.llm_ttft) == (tokens[0] + 1, pytest.approx(tokens[1] + 2, abs=0.1))
    assert counted(timed.llm_ttfs) == (sentences[0] + 1, pytest.approx(sentences[1] + 4, abs=0.1))


async def test_what_does_not_come_from_the_model_measures_nothing(stage: WorkerStage) -> None:
    before = counted(timed.llm_ttft), counted(timed.llm_ttfs)
    one = await speech(stage)
    await one.add_message("Sorry. ")
    assert (counted(timed.llm_ttft), counted(timed.llm_ttfs)) == before


async def test_an_edge_that_waits_is_sent_the_progress_of_the_turn(stage: WorkerStage) -> None:
    one = await speech(stage)
    await one.edge.send_progress()
    [progress] = stage.edge_commands()
    assert isinstance(progress, TurnProgressCommand) and (progress.session, progress.turn) == ("s1", "t1")
