import pytest

from fleet.core.ports import UNDECIDED, Transcript
from fleet.core.turn_end import GROWTH_MS, LATEST_MS, MOST_GROWTH_MS, MOST_TENTATIVE, THRESHOLDS, Decision, TurnEnd

MIDDLE, LONGEST = 600.0, 1200.0
DONE, OPEN = Transcript("Turn on the light.", "en"), Transcript("Set the volume to", "en")


def rule() -> TurnEnd:
    return TurnEnd(MIDDLE, LONGEST)


def ends_at(end: TurnEnd) -> float:
    """Return the shortest silence that commits."""
    return next(float(ms) for ms in range(0, 5000, 20) if end.decide(float(ms)) in ("commit", "keep"))


@pytest.mark.parametrize(
    ("probability", "text", "wait"),
    [
        (0.99, DONE, THRESHOLDS["en"].at_once_ms),
        (0.95, DONE, MIDDLE),
        (0.3, DONE, LONGEST),
        (0.99, OPEN, LONGEST),
        (0.1, OPEN, LONGEST),
        (0.99, Transcript("Turn on the light", "en"), LONGEST),
        (0.99, Transcript("", "en"), LONGEST),
        (None, DONE, MIDDLE),
        (None, OPEN, MIDDLE),
        (UNDECIDED, DONE, MIDDLE),
        (UNDECIDED, OPEN, MIDDLE),
        (0.99, Transcript("打开客厅的灯。", "zh"), THRESHOLDS["zh"].at_once_ms),
        (0.99, Transcript("打开", "zh"), LONGEST),
        (0.99, Transcript("现在急。", "zh", 0.55), LONGEST),
        (0.99, None, MIDDLE),
    ],
)
def test_sound_and_text_choose_one_of_three_waits(
    probability: float | None, text: Transcript | None, wait: float
) -> None:
    end = rule()
    end.judge(probability)
    end.read(text)
    assert ends_at(end) == wait


def test_nothing_ends_before_there_is_a_text() -> None:
    end = rule()
    end.judge(0.99)
    assert end.decide(LATEST_MS) == "wait"


def test_a_pause_without_verdicts_ends_after_the_longest_wait_of_the_session() -> None:
    end = rule()
    end.leave_unjudged()
    assert ends_at(end) == LONGEST
    end.go_on()
    assert ends_at(end) == LONGEST + GROWTH_MS
    end.note_voice()
    assert end.decide(LATEST_MS) == "wait"


def test_voice_makes_verdicts_void() -> None:
    end = rule()
    end.judge(0.99)
    end.read(DONE)
    end.note_voice()
    assert end.decide(LATEST_MS) == "wait"


@pytest.mark.parametrize("filler", [Transcript("Uh.", "en"), Transcript("嗯。", "zh")])
def test_a_filler_alone_is_kept(filler: Transcript) -> None:
    end = rule()
    end.judge(0.9)
    end.read(filler)
    assert end.decide(MIDDLE) == "keep"
    assert end.decide(MIDDLE - 1) == "wait"


def test_an_answer_is_prepared_where_one_verdict_says_finished_and_later_where_none_does() -> None:
    end = rule()
    end.judge(0.95)
    end.read(DONE)
    assert end.decide(200) == "tentative"
    end.read(OPEN)
    late = (MIDDLE + LONGEST) / 2
    assert [end.decide(ms) for ms in (200, late - 1, late)] == ["wait", "wait", "tentative"]
    end.read(Transcript("", "en"))
    assert end.decide(late) == "wait"


def test_an_utterance_gets_a_bounded_number_of_prepared_answers() -> None:
    end, made = rule(), list[Decision]()
    for _ in range(MOST_TENTATIVE + 1):
        end.judge(0.95)
        end.read(DONE)
        made.append(end.decide(200))
        if made[-1] == "tentative":
            assert end.note_tentative() == DONE
        end.note_voice()
    assert made == ["tentative"] * MOST_TENTATIVE + ["wait"]
    end.begin()
    end.judge(0.95)
    end.read(DONE)
    assert end.decide(200) == "tentative"


def test_waits_grow_in_a_session_whose_user_goes_on_and_stay_bounded() -> None:
    end, waits = rule(), list[float]()
    for _ in range(4):
        end.judge(0.95)
        end.read(DONE)
        waits.append(ends_at(end))
        end.go_on()
        end.begin()
    assert waits == [MIDDLE, MIDDLE + GROWTH_MS, MIDDLE + MOST_GROWTH_MS, MIDDLE + MOST_GROWTH_MS]
    assert LONGEST + MOST_GROWTH_MS < LATEST_MS


def test_a_recogniser_that_never_writes_marks_is_believed_after_two_utterances() -> None:
    end, waits = rule(), list[float]()
    for _ in range(3):
        end.judge(0.99)
        end.read(Transcript("turn on the light", "en"))
        waits.append(ends_at(end))
        end.begin()
    assert waits == [LONGEST, LONGEST, THRESHOLDS["en"].at_once_ms]
