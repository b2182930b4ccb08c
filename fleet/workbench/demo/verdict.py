"""Decides whether the demo succeeded."""

from collections.abc import Iterator
from dataclasses import dataclass

from fleet.ground.terminal import plural
from fleet.workbench.demo.results import DemoResult, SceneResult, TurnResult
from fleet.workbench.demo.script import WANTED_VOLUME
from fleet.workbench.demo.spoken_numbers import contains_number, contains_time


@dataclass(frozen=True, slots=True)
class Check:
    """A requirement, whether it was met, and what was observed."""

    what: str
    ok: bool
    seen: str


def judge(demo: DemoResult) -> list[Check]:
    """Return all checks; the demo succeeded if all are ok."""
    return [*(check for scene in demo.scenes for check in _judge_scene(scene)), *_judge_device(demo)]


def _judge_scene(result: SceneResult) -> Iterator[Check]:
    title, before, after = result.scene.title, result.scene.volume, result.volume
    yield Check(f"{title}: the device's volume changed", after == WANTED_VOLUME != before, f"{before} → {after}")
    missing = len(result.scene.lines) - len(result.answers)
    if missing:
        yield Check(f"{title}: everything was said", False, f"not said: {plural(missing, 'line')}")
    for answer in result.answers:
        yield _judge_answer(title, answer)


def _judge_answer(title: str, answer: TurnResult) -> Check:
    what = f"{title}: the answer to “{answer.line.text}” was heard"
    wrong = "; ".join(_faults(answer))
    seen = f"“{answer.heard}”" if answer.heard else "nothing"
    return Check(what, not wrong, f"{seen}: {wrong}" if wrong else seen)


def _faults(answer: TurnResult) -> Iterator[str]:
    line = answer.line
    if answer.outcome != "answered":
        yield f"the turn ended as “{answer.outcome}”"
    if line.tool and line.tool not in answer.calls:
        yield f"{line.tool} was not called"
    if line.number is not None:
        if not contains_number(answer.heard, line.number):
            yield f"{line.number} is not in it"
    elif not contains_time(answer.reply, answer.heard):
        yield f"the time of “{answer.reply}” is not in it"


def _judge_device(demo: DemoResult) -> Iterator[Check]:
    broken = len(demo.violations)
    seen = plural(broken, "violation") + (f": {demo.violations[0]}" if broken else "")
    yield Check("The device saw no rule of its firmware broken", not broken, seen)
    open_ = any(answer.outcome == "open" for scene in demo.scenes for answer in scene.answers)
    speaking = demo.speaking or open_
    yield Check("The device did not stay speaking", not speaking, "it did" if speaking else "every answer ended")
