"""Results of the demo, for summary and verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fleet.workbench.demo.script import Scene, ScriptLine
from fleet.workbench.demo.stages import Stages


@dataclass(slots=True)
class TurnResult:
    """The result of one line of the script.

    Args:
        line: Of the script.
        wav: File with the audio that the device played.
        outcome: Of the turn, as the simulated device reports it.
        understood: Transcript that the server sent to the device.
        reply: Sentences that the server sent to the device.
        calls: Names of the tools that were called.
        stages: Times of the turn.
        heard: Transcript of the audio that the device played.
        filled: Whether a filler ("One moment.") came before the answer.
    """

    line: ScriptLine
    wav: Path
    outcome: str
    understood: str = ""
    reply: str = ""
    calls: Sequence[str] = ()
    stages: Stages = field(default_factory=dict)
    heard: str = ""
    filled: bool = False


@dataclass(slots=True)
class SceneResult:
    """The result of a scene; `volume` is the volume of the device at its end."""

    scene: Scene
    volume: int
    answers: list[TurnResult] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DemoResult:
    """All results; `speaking` says whether the device was in the state speaking at the end."""

    scenes: Sequence[SceneResult]
    violations: Sequence[str] = ()
    speaking: bool = False
