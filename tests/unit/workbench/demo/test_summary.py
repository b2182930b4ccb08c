import io
from pathlib import Path

from rich.console import Console

from fleet.workbench.demo.results import SceneResult, TurnResult
from fleet.workbench.demo.script import SCENES
from fleet.workbench.demo.summary import files_table, show_summary
from fleet.workbench.demo.verdict import Check


def printed(console: Console) -> str:
    return console.export_text()


def test_everything_that_was_measured_is_shown() -> None:
    scene = SCENES["zh"]
    answer = TurnResult(
        scene.lines[0], Path("zh.wav"), "answered", "现在几点了", "现在是9点整。", (), {"ASR": 0.4}, "九点整"
    )
    console = Console(record=True, width=120, file=io.StringIO())
    show_summary(
        console, [SceneResult(scene, 30, [answer])], [Check("it works", True, "yes"), Check("all of it", False, "no")]
    )
    console.print(files_table(700_000_000, [answer.wav], Path("server.log")))
    text = printed(console)
    for part in (
        "现在几点了",
        "现在是9点整。",
        "九点整",
        "400",
        "median",
        "✔ it works",
        "✘ all of it",
        "700 MB",
        "zh.wav",
    ):
        assert part in text
    assert "–" in text


def test_memory_that_is_not_known_is_not_shown() -> None:
    console = Console(record=True, width=120, file=io.StringIO())
    console.print(files_table(0, [], Path("server.log")))
    assert "MB" not in printed(console)


def test_summary_says_that_a_filler_came_before_an_answer() -> None:
    scene = SCENES["en"]
    answers = [TurnResult(line, Path("en.wav"), "answered", filled=line is scene.lines[0]) for line in scene.lines]
    console = Console(record=True, width=120, file=io.StringIO())
    show_summary(console, [SceneResult(scene, 30, answers)], [])
    assert "1 answer came after a filler" in printed(console)
