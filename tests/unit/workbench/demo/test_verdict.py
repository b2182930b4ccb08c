from dataclasses import replace
from pathlib import Path

import pytest

from fleet.workbench.demo.results import DemoResult, SceneResult, TurnResult
from fleet.workbench.demo.script import SCENES
from fleet.workbench.demo.verdict import judge

SCENE = SCENES["en"]
REPLIES = ("It is 11:07 AM.", "The volume is now 30.", "The battery level is 62 percent.")


def answer(index: int) -> TurnResult:
    line = SCENE.lines[index]
    reply = REPLIES[index]
    calls = (line.tool,) if line.tool else ()
    return TurnResult(line, Path("x.wav"), "answered", line.text, reply, calls, {}, reply)


def good() -> SceneResult:
    return SceneResult(SCENE, 30, [answer(index) for index in range(3)])


def failed(result: DemoResult) -> list[str]:
    return [check.what for check in judge(result) if not check.ok]


def test_a_good_demo_succeeds() -> None:
    assert failed(DemoResult([good()])) == []
    assert len(judge(DemoResult([good()]))) == 6


@pytest.mark.parametrize("volume", [70, 31, 0])
def test_a_volume_that_did_not_become_thirty_fails(volume: int) -> None:
    assert failed(DemoResult([replace(good(), volume=volume)])) == ["English: the device's volume changed"]


def test_a_volume_that_was_right_before_proves_nothing() -> None:
    result = good()
    result.scene = replace(SCENE, volume=30)
    assert failed(DemoResult([result])) == ["English: the device's volume changed"]


@pytest.mark.parametrize("index", range(3))
def test_an_answer_that_was_not_heard_fails(index: int) -> None:
    result = good()
    result.answers[index].heard = ""
    assert failed(DemoResult([result])) == [f"English: the answer to “{SCENE.lines[index].text}” was heard"]


@pytest.mark.parametrize("index", range(3))
def test_another_answer_fails(index: int) -> None:
    result = good()
    result.answers[index].heard = "I did not understand that, only 5 words."
    assert len(failed(DemoResult([result]))) == 1


def test_an_answer_without_its_tool_call_fails() -> None:
    result = good()
    result.answers[2].calls = ("self.audio_speaker.set_volume",)
    assert len(failed(DemoResult([result]))) == 1


@pytest.mark.parametrize("outcome", ["silent", "timeout", "closed", "aborted"])
def test_a_turn_that_was_not_answered_to_its_end_fails(outcome: str) -> None:
    result = good()
    result.answers[0].outcome = outcome
    assert len(failed(DemoResult([result]))) == 1


def test_lines_that_were_not_said_fail() -> None:
    assert failed(DemoResult([replace(good(), answers=[answer(0), answer(1)])])) == ["English: everything was said"]


def test_a_broken_rule_and_a_device_that_stays_speaking_fail() -> None:
    assert len(failed(DemoResult([good()], violations=["sequence (4.1): 7 after 9"]))) == 1
    assert len(failed(DemoResult([good()], speaking=True))) == 1
