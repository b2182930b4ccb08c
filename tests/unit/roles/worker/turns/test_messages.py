from typing import Any

import pytest
from msgspec.structs import replace

from fleet.core.text.screen import LONGEST_ALERT
from fleet.core.text.speakable import speakable
from fleet.ground.errors import Fenced, Overloaded
from fleet.roles.worker.turns import messages
from fleet.roles.worker.turns.messages import LONGEST_THOUGHT, ScreenMessages
from tests.support.worker_stage import WorkerStage


async def screen(stage: WorkerStage, *, dialect: str = "registrar", edge: str = "") -> ScreenMessages:
    session = await stage.open("s1", edge or "edge-1", dialect)
    return ScreenMessages(stage.shard, replace(session, edge=edge))


def write(one: ScreenMessages, *pieces: str) -> None:
    for piece in pieces:
        one.write(piece)
        one.cut(piece)


def texts(stage: WorkerStage) -> list[tuple[Any, Any]]:
    """Return kind and text of all messages."""
    return [(one["params"]["type"], one["params"]["content"]) for one in stage.sent()]


async def test_the_pieces_put_together_are_the_whole(stage: WorkerStage) -> None:
    one = await screen(stage)
    write(one, "One. ", "Two. ")
    one.send()
    write(one, "Three.")
    one.end()
    *pieces, (kind, whole) = texts(stage)
    assert "".join(text for _, text in pieces) == whole == "One. Two. Three."
    assert ({kind for kind, _ in pieces}, kind) == ({"chunk"}, "final")


async def test_a_broker_that_is_busy_costs_a_piece_and_not_the_answer(stage: WorkerStage) -> None:
    one = await screen(stage)
    write(one, "One. ")
    stage.session.fault = Overloaded("full")
    one.send()
    with pytest.raises(Overloaded):
        one.end()
    stage.session.fault = None
    one.end()
    assert texts(stage)[-1][1] == "One. " and len(texts(stage)) == 2


async def test_what_another_worker_may_have_shown_is_only_in_the_whole(stage: WorkerStage) -> None:
    one = await screen(stage)
    one.repeated = True
    write(one, "One. ")
    one.repeated = False
    write(one, "Two. ")
    one.send()
    one.end()
    assert [text for _, text in texts(stage)] == ["Two. ", "One. Two. "]


async def test_an_answer_that_was_cut_off_shows_what_was_sent_of_it(stage: WorkerStage) -> None:
    one = await screen(stage)
    write(one, "One. ")
    one.send()
    write(one, "Two. ")
    one.abort()
    assert [text for _, text in texts(stage)] == ["One. ", "One. "]


async def test_thoughts_are_sent_by_the_line(stage: WorkerStage) -> None:
    one = await screen(stage)
    for piece in ("I ", "think. ", "x" * LONGEST_THOUGHT, "rest"):
        one.think(piece)
    one.end()
    assert texts(stage) == [("thought", "I think. "), ("thought", "x" * LONGEST_THOUGHT), ("thought", "rest")]


async def test_a_device_that_can_speak_without_a_session_gets_one_short_alert(stage: WorkerStage) -> None:
    one = await screen(stage, dialect="xiaozhi")
    write(one, "**Look** 😀 ", "a" * 1000)
    one.send()
    one.think("I think. ")
    one.end()
    [alert] = stage.sent()
    assert alert["type"] == "alert" and len(alert["message"]) == LONGEST_ALERT and alert["message"].startswith("Look")


async def test_of_an_endless_answer_only_what_a_screen_may_show_is_cleaned(
    stage: WorkerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleaned: list[int] = []

    def noted(text: str) -> str:
        cleaned.append(len(text))
        return speakable(text)

    monkeypatch.setattr(messages, "speakable", noted)
    one = await screen(stage, dialect="xiaozhi")
    write(one, "**Look** 😀 ", "a" * 100_000)
    one.end()
    [alert] = stage.sent()
    assert alert["message"].startswith("Look") and alert["message"].endswith("a…") and alert["emotion"] == "happy"
    assert LONGEST_ALERT < sum(cleaned) < 20 * LONGEST_ALERT


async def test_an_answer_without_words_for_a_screen_shows_nothing(stage: WorkerStage) -> None:
    one = await screen(stage, dialect="xiaozhi")
    write(one, "```py\nx = 1\n```")
    one.end()
    assert stage.sent() == []


async def test_an_alert_without_an_emotion_has_a_neutral_face(stage: WorkerStage) -> None:
    one = await screen(stage, dialect="xiaozhi")
    write(one, "a" * LONGEST_ALERT)
    one.end()
    [alert] = stage.sent()
    assert (alert["message"], alert["emotion"], alert["status"]) == ("a" * LONGEST_ALERT, "neutral", "")


async def test_a_device_in_a_session_gets_no_text(stage: WorkerStage) -> None:
    one = await screen(stage, dialect="xiaozhi", edge="edge-1")
    write(one, "One. ")
    one.send()
    one.end()
    assert stage.sent() == []


async def test_who_may_have_lost_the_shard_shows_nothing(stage: WorkerStage) -> None:
    one = await screen(stage)
    write(one, "One. ")
    stage.shard.lease.end()
    for work in (one.send, one.end):
        with pytest.raises(Fenced):
            work()
    assert stage.sent() == []
