import io

import pytest
from rich.console import Console

from fleet.workbench.sim.records.turns import Turn
from tests.benchmarks.interruptions import (
    GO_ON_SECONDS,
    Heard,
    Interrupted,
    InterruptionFigures,
    Passed,
    passed_over,
)
from tests.benchmarks.interruptions_table import show_interruptions
from tests.benchmarks.overlaps import Overlap, noises, texts_of

FRAME = bytes(24_000 * 60 // 1000 * 2)
COUGH = Overlap("noise", "cough", b"")


def answer(*silences: tuple[float, float], seconds: float = 10.0) -> Turn:
    """Return an answer that begins at 100 s, with silences of given lengths at given times of its sound."""
    turn, at, sounded = Turn(0, spoken=True), 100.0, 0.0
    left = list(silences)
    while sounded < seconds:
        if left and sounded >= left[0][0]:
            at += left.pop(0)[1]
        turn.pieces.append((at, FRAME))
        at, sounded = at + 0.06, sounded + 0.06
    return turn


@pytest.mark.parametrize(
    ("turn", "went_on", "gap"),
    [
        (answer(), True, 0.0),
        (answer((2.2, 0.9)), True, 0.9),
        (answer((2.2, GO_ON_SECONDS + 0.1)), False, GO_ON_SECONDS + 0.1),
        (answer(seconds=2.4), False, 0.0),
        (answer(seconds=5.0), False, 0.0),
        (answer((8.0, 3.0)), True, 0.0),
    ],
)
def test_answer_that_goes_on_is_told_from_one_that_does_not(turn: Turn, went_on: bool, gap: float) -> None:
    passed = passed_over(COUGH, turn, 102.0)
    assert passed.went_on == went_on
    assert passed.gap == pytest.approx(gap)


def test_sound_that_was_not_said_has_not_passed() -> None:
    assert not passed_over(COUGH, answer(), None).went_on


def test_noises_differ_and_can_be_made_again() -> None:
    sounds = [one.pcm for one in noises(10)]
    assert len(set(sounds)) == 10
    assert sounds == [one.pcm for one in noises(10)]
    assert not set(sounds) & {one.pcm for one in noises(10, seed=2)}


def test_texts_come_in_both_languages_in_turn() -> None:
    assert texts_of({"en": ("a", "b"), "zh": ("c",)}, 5) == [
        ("en", "a"),
        ("zh", "c"),
        ("en", "b"),
        ("zh", "c"),
        ("en", "a"),
    ]


def test_table_names_what_went_wrong() -> None:
    found = InterruptionFigures(
        [Passed("noise", "cough", True, 0.5), Passed("backchannel", "嗯。", False, 1.4)],
        [Heard("en", 50, 2, 3)],
        [Interrupted("Stop.", 0.25, 0.6, True, "Stop."), Interrupted("停。", 0.4, 0.7, False, "")],
        {"noise": 1},
        ["underrun: 900 ms"],
    )
    console = Console(record=True, width=120, file=io.StringIO())
    show_interruptions(console, found)
    text = console.export_text()
    for part in (
        "1 of 1",
        "0 of 1",
        "2 of 50 words",
        "3 packets",
        "1 of 2 in 350 ms",
        "1 of 2 in 650 ms",
        "嗯。",
        "900 ms",
    ):
        assert part in text
    assert "1 of 2 interruptions were answered" in text
