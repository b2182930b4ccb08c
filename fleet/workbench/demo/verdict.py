"""Whether the demo succeeded."""

from collections.abc import Iterator
from dataclasses import dataclass

from fleet.workbench.demo.acts import Act, Answer, Evidence
from fleet.workbench.demo.clues import tells, tells_time
from fleet.workbench.demo.script import WANTED_VOLUME


@dataclass(frozen=True, slots=True)
class Check:
    """One requirement, whether it was met, and what was seen."""

    what: str
    ok: bool
    seen: str


def judge(evidence: Evidence) -> list[Check]:
    """Return all checks; the demo succeeded when there is one and all are ok."""
    return [*(check for act in evidence.acts for check in _judge_act(act)), *_judge_device(evidence)]


def _judge_act(act: Act) -> Iterator[Check]:
    title, before, after = act.scene.title, act.scene.volume, act.volume
    yield Check(f"{title}: the device's volume changed", after == WANTED_VOLUME != before, f"{before} → {after}")
    missing = len(act.scene.lines) - len(act.answers)
    if missing:
        yield Check(f"{title}: everything was said", False, f"{missing} lines were not")
    for answer in act.answers:
        yield _judge_answer(title, answer)


def _judge_answer(title: str, answer: Answer) -> Check:
    what = f"{title}: the answer to “{answer.line.text}” was heard"
    wrong = "; ".join(_faults(answer))
    seen = f"“{answer.heard}”" if answer.heard else "nothing"
    return Check(what, not wrong, f"{seen}: {wrong}" if wrong else seen)


def _faults(answer: Answer) -> Iterator[str]:
    line = answer.line
    if answer.outcome != "answered":
        yield f"the turn ended as “{answer.outcome}”"
    if line.tool and line.tool not in answer.calls:
        yield f"{line.tool} was not called"
    if line.number is not None:
        if not tells(answer.heard, line.number):
            yield f"{line.number} is not in it"
    elif not tells_time(answer.reply, answer.heard):
        yield f"the time of “{answer.reply}” is not in it"


def _judge_device(evidence: Evidence) -> Iterator[Check]:
    broken = len(evidence.violations)
    seen = f"{broken}: {evidence.violations[0]}" if broken else "0 violations"
    yield Check("The device saw no rule of its firmware broken", not broken, seen)
    open_ = any(answer.outcome == "open" for act in evidence.acts for answer in act.answers)
    left = evidence.speaking or open_
    yield Check("The device was not left speaking", not left, "it was" if left else "every answer ended")
