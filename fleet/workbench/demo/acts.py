"""The results of the demo, for summary and verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fleet.workbench.demo.script import Line, Scene
from fleet.workbench.demo.stages import Stages


@dataclass(slots=True)
class Answer:
    """The result of one line of the script.

    `understood` is the transcript that the device was shown, `reply` the sentences that it was shown, `heard` what
    recognition makes of the sound that it played, `wav` the file with that sound.
    """

    line: Line
    wav: Path
    outcome: str
    understood: str = ""
    reply: str = ""
    calls: Sequence[str] = ()
    stages: Stages = field(default_factory=dict)
    heard: str = ""


@dataclass(slots=True)
class Act:
    """A scene as it was played; `volume` is the device's at its end."""

    scene: Scene
    volume: int
    answers: list[Answer] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Evidence:
    """All results. `speaking`: the device was left in the state speaking."""

    acts: Sequence[Act]
    violations: Sequence[str] = ()
    speaking: bool = False
