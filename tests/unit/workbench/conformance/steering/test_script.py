from dataclasses import replace

import pytest

from fleet.workbench.conformance.steering.script import (
    Fault,
    Round,
    Scene,
    answer,
    calls,
    letters,
    long_text,
    mentioned,
    named,
)


@pytest.mark.parametrize(
    ("fault", "understood"),
    [
        ("none", Fault()),
        ("silent", Fault(silent=True)),
        ("status 401", Fault(status=401)),
        ("breaks off after 3 pieces", Fault(breaks_after=3)),
        ("breaks off after 1 piece", Fault(breaks_after=1)),
        ("breaks off after 0", Fault(breaks_after=0)),
    ],
)
def test_a_fault_is_understood(fault: str, understood: Fault) -> None:
    assert Round(fault=fault).trouble == understood


@pytest.mark.parametrize("fault", ["", "status", "status 200", "status 600", "breaks off", "Silent", "silent "])
def test_an_unknown_fault_is_refused(fault: str) -> None:
    with pytest.raises(ValueError, match="unknown fault"):
        Round(fault=fault)


@pytest.mark.parametrize(("before", "pace"), [(-1.0, 0.0), (0.0, 61.0), (float("nan"), 0.0)])
def test_a_wait_without_a_limit_is_refused(before: float, pace: float) -> None:
    with pytest.raises(ValueError, match="waits are 0 to 60 s"):
        Round(before=before, pace=pace)


@pytest.mark.parametrize("mark", [99, 424])
def test_a_scene_needs_a_mark_that_exists(mark: int) -> None:
    with pytest.raises(ValueError, match="there is no mark"):
        Scene(mark)


def test_a_changed_round_keeps_what_it_was() -> None:
    assert replace(Round("a", fault="status 500"), text="b") == Round("b", fault="status 500")


def test_the_transcript_always_tells_the_mark() -> None:
    assert Scene(137).words == "scene 137"
    assert Scene(137, "what time is it").words == "scene 137: what time is it"
    assert Scene(137, "Play scene 137!").words == "Play scene 137!"
    assert Scene(137, "Play scene 138!").words == "scene 137: Play scene 138!"


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("scene 137: what time is it", 137),
        ("Scene137whattimeisit", 137),
        ("SCENE\n#137.", 137),
        ("the scene 1370", 137),
        ("137", None),
        ("scene 37", None),
        ("scene one 137", None),
        ("", None),
    ],
)
def test_a_mark_is_found_in_a_text_however_it_was_cleaned(text: str, mark: int | None) -> None:
    assert mentioned(text) == mark


def test_helpers_put_the_mark_into_texts_without_it() -> None:
    assert answer(137, "It is noon.").rounds == (Round("Scene 137: It is noon."),)
    assert answer(137, "Scene 137 is over.").rounds == (Round("Scene 137 is over."),)
    assert named(137, "") == ""
    first, second = calls(137, "self.led.on", {"level": 1}, then="lit").rounds
    assert first.calls == (("self.led.on", {"level": 1}),)
    assert second.text == "Scene 137: lit"


def test_there_is_an_answer_beyond_the_script() -> None:
    scene = answer(137, "Scene 137.")
    assert scene.round(0).text == "Scene 137."
    assert scene.round(1) == scene.round(9)
    assert "over" in scene.round(1).text
    assert "answered" in Scene(137).round(0).text


def test_each_sentence_of_a_long_text_tells_its_mark_and_is_too_long_to_be_kept_as_a_phrase() -> None:
    sentences = long_text(137, 12).split(". ")
    assert len(set(sentences)) == 12
    assert all(mentioned(sentence) == 137 and len(sentence) > 40 for sentence in sentences)


def test_letters_are_what_cleaners_leave() -> None:
    assert letters("**Good** morning, 世界! ☀️ 3") == "goodmorning世界3"
